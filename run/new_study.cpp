#include "run/new_study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "results/run_record.h"
#include "run/diagnosis.h"
#include "run/program_run.h"

namespace paceline {

namespace {

constexpr int kMostCores = 8;  // replicas on cores that are offered

// What `parse` makes of the option `name`, else of the answer. Its second argument is for errors.
template <typename Parse>
auto choose(const std::string& given, const char* name, const Dialog& dialog,
            const std::string& question, const std::string& offer, const Parse& parse) {
  if (!given.empty()) return parse(given, name);
  while (dialog.ask) {
    const std::string answer = dialog.ask(question, offer);  // throws at the end of the input
    try {
      return parse(answer, "the answer");
    } catch (const Error& error) {
      dialog.report(error.what());
    }
  }
  return parse(offer, "the answer");
}

std::vector<int> parse_counts(const std::string& text, const std::string& where) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto count = to_integer(trim(part));
    if (!count || *count < 1 || *count > 1'000'000) {
      throw usage_error(fmt::format("\"{}\" is not a list of numbers above 0", text), where,
                        "write 1,2,4");
    }
    counts.push_back(static_cast<int>(*count));
  }
  return counts;
}

std::vector<std::string> workload_names() {
  return mapped(known_names().workloads, &Name::name);
}

bool is_workload(const std::string& program) {
  return std::ranges::count(workload_names(), program) > 0;
}

std::string first_backend(const std::string& device) {
  const std::vector<std::string> names = find_name("device", device).backends;
  for (const std::string& name : names) {
    if (find_name("backend", name).built) return name;
  }
  return names.empty() ? lone_backend() : names.front();  // of the program that will run it
}

// GPUs if there are any.
std::string device_here() {
  for (const Name& device : known_names().devices) {
    if (device.gpus && device.built && count_gpus(device.name) > 0) return device.name;
  }
  return "cpu";
}

int replicas_here(const std::string& device) {
  const int gpus = count_gpus(device);
  return gpus > 0 ? gpus : std::clamp(static_cast<int>(usable_cpus().size()), 1, kMostCores);
}

// An option that says nothing about such a program.
void refuse_other(bool given, const char* option, const char* of) {
  if (!given) return;
  throw usage_error(fmt::format("{} is for {}", option, of), "", "leave it out");
}

// A workload or a command line. A mistyped workload is no program.
std::string parse_program_line(const std::string& text, const std::string& where) {
  const bool is_word = text.find_first_of(" /") == std::string::npos;
  if (is_word && !is_workload(text) && nearest(text, workload_names()) &&
      !find_program(text, environment_of_process())) {
    throw usage_error(fmt::format("\"{}\" is neither a workload nor a program here", text), where,
                      suggestion(text, workload_names()));
  }
  return text;
}

std::string parse_device(const std::string& text, const std::string& where) {
  return find_name("device", text, where).name;
}

std::vector<std::string> parse_backends(const std::string& text, const std::string& where) {
  std::vector<std::string> backends;
  for (const std::string& part : split(text, ',')) {
    backends.emplace_back(trim(part));
    find_name("backend", backends.back(), where);
  }
  return backends;
}

int parse_repeats(const std::string& text, const std::string& where) {
  const std::vector<int> counts = parse_counts(text, where);
  if (counts.size() == 1) return counts.front();
  throw usage_error(fmt::format("\"{}\" is several numbers", text), where, "write one");
}

UserProgram program_with(const std::string& throughput, const std::string& where,
                         const NewSpec& like = {}) {
  return parse_program(where, fmt::format(R"({{"command": ["true"], "results": {}}})",
                                          results_text(throughput, like.unit, like.better)));
}

// Empty: none.
std::string parse_throughput(const std::string& text, const std::string& where) {
  if (!text.empty()) check_results(program_with(text, where));
  return text;
}

std::string parse_work(const std::string& text, const std::string& where) {
  return to_text(checked_value("work", text, where));
}

std::string read_by(const std::string& throughput, const std::string& text, int replicas,
                    const NewSpec& like = {}) {
  const UserProgram program = program_with(throughput, "--throughput", like);
  ProgramResults results(program.results);
  const auto end = text.find_last_of("\r\n") + 1;
  results.append(text.substr(0, end));
  if (end < text.size()) results.append(text.substr(end), LineFault::cut);
  const ProgramReport report = results.finish({}, replicas);
  RunRecord record;
  record.layout.gpus = replicas;
  record.provenance.program.emplace();
  set_results(record, report, HUGE_VAL);
  std::string shown;
  const auto row = [&](std::string_view name, const std::string& value) {
    shown += fmt::format("  {:<18} {}\n", name, value);
  };
  for (const auto& [name, numbers] : report.numbers) {
    const auto [least, most] = std::ranges::minmax(numbers);
    const std::string list =
        fmt::format("{} numbers, {:.5g} to {:.5g}", numbers.size(), least, most);
    row(name, numbers.size() > 1 ? list : fmt::format("{:.10g}", numbers.front()));
  }
  for (const auto& [name, word] : report.words) row(name, word);
  if (!record.provenance.rate_is.empty()) {
    const Throughput& rate = *record.throughput;
    row("rate", fmt::format("{:.5g} {}{}: {}", *rate.samples_per_second,
                            rate.unit.empty() ? "samples" : rate.unit,
                            rate.better.empty() ? "/s" : "", record.provenance.rate_is));
  }
  return shown;
}

}  // namespace

std::string try_results(const std::string& log, const NewStudy& given) {
  const int replicas = given.gpus.empty() ? 1 : given.gpus.front();
  constexpr std::size_t kMostLog = std::size_t{256} << 20;
  const std::string text = read_text(log, kMostLog);
  NewSpec like;
  if (!given.unit.empty()) like.unit = given.unit;
  like.better = given.better;
  if (!given.throughput.empty()) return read_by(given.throughput, text, replicas, like);
  std::string shown;
  std::vector<std::string> names;
  for (const ResultPreset& preset : result_presets()) {
    names.emplace_back(preset.name);
    try {
      const std::string read = read_by(preset.name, text, replicas);
      shown += fmt::format("--throughput {}\n{}", preset.name, read);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
    }
  }
  if (!shown.empty()) return shown;
  throw input_error(fmt::format("no preset reads it ({})", join(names, ", ")), log,
                    "give an expression: --throughput 'rate: {number}'");
}

NewSpec make_new_spec(const NewStudy& given, const Dialog& dialog) {
  NewSpec spec;
  spec.name = given.name;
  const std::string program =
      choose(given.program, "--program", dialog, "A workload, or your command line", "mnist-cnn",
             parse_program_line);
  const bool ours = is_workload(program) && program != kCommandWorkload;
  (ours ? spec.workload : spec.command) = program;
  refuse_other(ours && !given.throughput.empty(), "--throughput", "a program of your own");
  refuse_other(ours && !given.processes.empty(), "--processes", "a program of your own");
  refuse_other(ours && !given.work.empty(), "--work", "a program of your own");
  refuse_other(!ours && !given.backends.empty(), "--backend", "our workloads");
  if (!given.processes.empty()) spec.processes = given.processes;
  spec.device =
      choose(given.device, "--device", dialog, "Device (cpu, cuda)", device_here(), parse_device);
  if (ours) {
    spec.backends =
        choose(join(given.backends, ","), "--backend", dialog, "Backends (paceline list backends)",
               first_backend(spec.device), parse_backends);
  } else {
    spec.throughput =
        choose(given.throughput, "--throughput", dialog,
               "Its throughput, as a regular expression with one group", "", parse_throughput);
    const bool has_unit = !given.unit.empty() || !given.better.empty();
    const bool is_line = !spec.throughput.empty() && !is_preset(spec.throughput);
    refuse_other(has_unit && !is_line, "--unit", "the expression of a throughput");
    const auto as_it_is = [](const std::string& text, const std::string&) { return text; };
    if (is_line) {
      spec.unit = choose(given.unit, "--unit", dialog, "Its unit", spec.unit, as_it_is);
    }
    spec.better = given.better;
    // What nobody says stays an assumption.
    if (dialog.ask || !given.work.empty()) {
      spec.work = choose(given.work, "--work", dialog,
                         "Work of a run: the same at every size (fixed) or on each replica (grows)",
                         "fixed", parse_work);
    }
  }
  spec.gpus =
      choose(fmt::format("{}", fmt::join(given.gpus, ",")), "--gpus", dialog,
             "Numbers of replicas (GPUs, or groups of cores)",
             fmt::format("{}", fmt::join(doubling(replicas_here(spec.device)), ",")), parse_counts);
  spec.repeats = choose(given.repeats > 0 ? std::to_string(given.repeats) : "", "--repeats", dialog,
                        "Repeats", "5", parse_repeats);
  return spec;
}

}  // namespace paceline
