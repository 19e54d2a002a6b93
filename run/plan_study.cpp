#include "run/plan_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/gate/quantity.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"
#include "results/expected_runs.h"
#include "results/machine.h"
#include "results/names.h"
#include "run/program_run.h"

namespace paceline {

namespace fs = std::filesystem;

bool engine_is_here() {
  return std::ranges::any_of(known_names().backends, &Name::built);
}

namespace {

// A path that starts its first command, and scripts among the words of that, which are not there. A
// shell's text may do anything: it is read up to its first word that is not plain.
void report_absent_files(const UserProgram& program) {
  static const std::set<std::string> scripts = {".R", ".jl", ".lua", ".pl", ".py", ".sh"};
  std::vector<std::string> words = program.setup.empty() ? program.command : program.setup;
  if (program.shell) words = split(trim(words.front()), ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool plain = word.find_first_of("{$`'\"\\*?[~=;&|<>()") == std::string::npos;
    if (!plain && program.shell) return;
    const bool starts = i == 0 && word.find('/') != std::string::npos;
    const bool is_script = !word.starts_with('-') && scripts.contains(fs::path(word).extension());
    if (!plain || !(starts || is_script) || path_exists(fs::path(program.directory) / word))
      continue;
    print_note("not here: {}, which program {} starts in {}; check its path\n", word, program.name,
               program.directory);
  }
}

}  // namespace

std::vector<Resolved> resolve_points(const StudyPlan& plan, AbsentData absent,
                                     std::string* not_here, const std::string& data_fix) {
  std::vector<Resolved> resolved;
  bool data_is_here = true;
  const auto warn = [&](const Error& error) {
    data_is_here = false;
    if (not_here) {
      *not_here = error.what();
    } else {
      print_note("not here: {}\n", error.what());
    }
  };
  for (const UserProgram& program : plan.spec.programs) {
    check_results(program);
    if (absent == AbsentData::unlike_any) report_absent_files(program);
  }
  RunResolver resolver(plan.spec.workload,
                       absent == AbsentData::refused ? std::function<void(const Error&)>() : warn,
                       data_fix);
  std::map<std::string, ProgramFacts> programs;
  for (const UserProgram& program : plan.spec.programs) {
    programs.emplace(program.tag(), program_facts(program, 0));
  }
  for (const PlannedPoint& planned : plan.expansion.points) {
    try {
      resolved.push_back(resolver.resolve(planned.parameters));
      const auto& parameters = resolved.back().parameters;
      const auto program = programs.find(parameters.text("program").value_or(""));
      if (program != programs.end()) resolved.back().program = program->second;
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("point {} cannot be run: {}", planned.point.text(), error.what()),
                  plan.spec.where);
    }
  }
  if (absent != AbsentData::like_any) return resolved;
  for (Resolved& each : resolved) {
    if (!data_is_here) each.data_hash.clear();
    if (!engine_is_here()) each.identity.clear();  // who knows no workloads knows no defaults
  }
  return resolved;
}

StoreContent look_at_store(StudyPlan& plan, const std::vector<Resolved>& resolved, bool new_build,
                           const std::function<OtherMachine(const StoreContent&)>& place,
                           int repeats) {
  const Spec& spec = plan.spec;
  StoreContent store;
  if (path_exists(plan.study)) store = load_store(plan.study);
  plan.runs =
      take_inventory(plan.expansion.points,
                     schedule(plan.expansion.points.size(), repeats > 0 ? repeats : spec.repeats,
                              spec.interleaved, spec.seed),
                     store, resolved, new_build, place(store));
  plan.rejected = store.rejected;
  return store;
}

TargetPrecision read_target_precision(const StudyOptions& options, Spec& spec) {
  TargetPrecision precision;
  if (options.until_precision.empty()) return precision;
  precision.share = parse_threshold(options.until_precision, "--until-precision", "precision");
  precision.most = options.max_repeats;
  spec.sequential = true;
  spec.repeats = options.repeats;
  constexpr int kFewest = static_cast<int>(kFewestSequentialRuns);
  if (options.repeats == 0) spec.repeats = kFewest;
  if (spec.repeats < kFewest) {
    throw usage_error("speed-ups over fewer than 4 runs have no anytime-valid interval",
                      "--repeats",
                      "give the first repeats of every point, 4 or more, or leave it out");
  }
  if (precision.most < spec.repeats) {
    throw usage_error(
        fmt::format("{} is less than the first {} repeats", precision.most, spec.repeats),
        "--max-repeats", "raise it");
  }
  return precision;
}

OtherMachine unlike_this_machine(const StudyPlan& plan) {
  const Topology topology = topology_of_machine();
  Machine here;
  here.cpu_model = topology.cpu_model;
  here.cpus = topology.machine_cpus;
  here.memory_bytes = static_cast<double>(topology.memory_bytes);
  const std::set<std::string> devices = distinct(
      plan.expansion.points,
      [](const PlannedPoint& point) { return point.parameters.text("device").value_or(""); });
  for (const std::string& device : devices) {
    if (here.gpu.empty()) here.gpu = gpus_of_this_machine(device);
  }
  return [here](const Record& record) {
    const Machine machine = identify_machine(record);
    return alike(here, machine) ? "" : machine.text();
  };
}

void save_expected_runs(const StudyPlan& plan) {
  ExpectedRuns wanted{plan.spec.name, plan.spec.workload, plan.spec.repeats, {}};
  for (const UserProgram& program : plan.spec.programs) {
    wanted.programs.push_back(program_facts(program, 0));
    wanted.programs.back().seconds.reset();
    wanted.seen_at = utc_time_stamp();
  }
  for (const PlannedPoint& point : plan.expansion.points) {
    if (!point.parameters.find(kControl)) wanted.points.push_back(point.parameters);
  }
  write_expected_runs(plan.study, wanted);
  replace_file(plan.study / kSpecFile, to_text(plan.spec));
}

LostSummary summarize(const std::vector<LostRecords>& lost) {
  constexpr std::size_t kMostPlaces = 5;
  LostSummary summary;
  for (const LostRecords& one : lost) {
    summary.records += static_cast<std::int64_t>(one.count.value_or(0));
    if (summary.places.size() < kMostPlaces) summary.places.push_back(one.text());
  }
  return summary;
}

}  // namespace paceline
