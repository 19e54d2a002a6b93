#include "run/outcome_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "analysis/screen/screen.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/train/config.h"
#include "results/step_samples.h"
#include "results/store.h"
#include "run/plan_study.h"
#include "run/version.h"

namespace paceline {

namespace {

constexpr std::size_t kPartBytes = std::size_t{16} << 20;  // of samples, compressed at once

// "run.failed.json" next to "run.json" (reserved for a later success), or the first free one of
// "run.failed.2.json", ...
std::filesystem::path failed_record_name(const std::filesystem::path& record) {
  std::filesystem::path name = record;
  name.replace_extension(".failed.json");
  std::error_code ignored;
  for (int attempt = 2; std::filesystem::exists(name, ignored); ++attempt) {
    name = record;
    name.replace_extension(fmt::format(".failed.{}.json", attempt));
  }
  return name;
}

Provenance collect_provenance(const RunRequest& request, const RunFacts& facts,
                              const TrainingOutcome& outcome) {
  Provenance made = facts.provenance;
  made.libraries = outcome.device_description;
  made.backend_requested = request.config.place.backend;
  made.implementations = outcome.implementations;
  if (made.machine_load.involuntary_switches && outcome.steps > 0) {
    made.machine_load.involuntary_switches_per_step =
        static_cast<double>(*made.machine_load.involuntary_switches) /
        static_cast<double>(outcome.steps);
  }
  if (environment_of_process().count("PACELINE_FELL_BACK") > 0) made.fell_back = true;
  made.screened = find_screened();
  if (facts.other_jobs >= 0) {
    if (!made.allocation) made.allocation.emplace();
    made.allocation->other_jobs = facts.other_jobs;
  }
  return made;
}

// The outcome's, with what is known here.
std::vector<RankFacts> collect_ranks(const RunFacts& facts, const TrainingOutcome& outcome) {
  std::vector<RankFacts> ranks = outcome.each_rank;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].host = facts.cards[r].host;
    ranks[r].affinity = facts.cards[r].cpus;
    ranks[r].step_seconds =
        step_quantiles(std::span(outcome.ranks[r].steps).subspan(count_warmup(outcome)));
  }
  return ranks;
}

Throughput collect_throughput(const TrainingOutcome& outcome) {
  const auto& tokens = outcome.plan.tokens_per_sample;
  const auto each = static_cast<double>(tokens.value_or(1));
  return {.samples_per_second = each * samples_per_second(outcome),
          .warmup_steps_excluded = count_warmup(outcome),
          .samples = each * static_cast<double>(outcome.samples),
          .unit = tokens ? "tokens" : "",
          .steps = static_cast<double>(outcome.steps)};
}

std::optional<GoalFacts> collect_goal(const RunRequest& request, const TrainingOutcome& outcome) {
  const std::optional<Goal>& until = request.config.train.until;
  if (!until) return std::nullopt;
  GoalFacts goal{.goal = until->text(),
                 .reached = outcome.goal_reached,
                 .epochs = static_cast<double>(outcome.quality.epochs.size()),
                 .steps = static_cast<double>(outcome.resumed_after + outcome.steps)};
  if (outcome.goal_reached && !outcome.resumed) {
    const Timing& timing = outcome.timing;
    goal.fit_seconds = timing.fit_seconds;
    goal.seconds_with_evaluation = *timing.fit_seconds + timing.evaluation_seconds.value_or(0);
  }
  return goal;
}

constexpr double kColdBelow = 0.5;  // share of the files in the page cache

const char* to_string(CacheKind kind) {
  return kind == CacheKind::off ? "off" : kind == CacheKind::raw ? "raw" : "decoded";
}

// Only encoded images have something to count.
InputFacts collect_input(const RunFacts& facts, const TrainingOutcome& outcome) {
  InputFacts input;
  if (facts.decodes) {
    input = outcome.input;
    input.cache = to_string(facts.input.cache);
    input.pixels = facts.input.type == DType::f32 ? "fp32" : "uint8";
    input.cache_shared = facts.input.cache == CacheKind::off ? 0 : facts.cache.ranks;
    input.cache_budget_bytes = facts.cache.bytes;
    const LostSummary lost = summarize(facts.lost);
    input.lost_records = lost.records;
    input.lost_places = lost.places;
  }
  if (facts.resident_share) {
    input.cold = *facts.resident_share < kColdBelow;
    input.resident_share = facts.resident_share;
  }
  if (facts.staged_bytes > 0) {
    input.stage_seconds = facts.stage_seconds;
    input.staged_bytes = facts.staged_bytes;
    input.staged_before = facts.staged_before;
  }
  return input;
}

// Nothing outside of a job.
std::optional<Allocation> find_allocation(const Environment& environment) {
  constexpr std::size_t kMostText = 2000;  // of a module list; a record is small
  if (environment.count("SLURM_JOB_ID") == 0) return std::nullopt;
  Allocation given;
  for (const auto& [member, variable] : {std::pair{&Allocation::job, "SLURM_JOB_ID"},
                                         {&Allocation::array_job, "SLURM_ARRAY_JOB_ID"},
                                         {&Allocation::array_task, "SLURM_ARRAY_TASK_ID"},
                                         {&Allocation::restarts, "SLURM_RESTART_COUNT"},
                                         {&Allocation::cluster, "SLURM_CLUSTER_NAME"},
                                         {&Allocation::partition, "SLURM_JOB_PARTITION"},
                                         {&Allocation::nodes, "SLURM_JOB_NODELIST"},
                                         {&Allocation::node, "SLURMD_NODENAME"},
                                         {&Allocation::tasks_per_node, "SLURM_TASKS_PER_NODE"},
                                         {&Allocation::cpus_per_node, "SLURM_JOB_CPUS_PER_NODE"},
                                         {&Allocation::cpus_per_task, "SLURM_CPUS_PER_TASK"},
                                         {&Allocation::memory_mb_per_node, "SLURM_MEM_PER_NODE"},
                                         {&Allocation::memory_mb_per_cpu, "SLURM_MEM_PER_CPU"},
                                         {&Allocation::gpus, "SLURM_JOB_GPUS"},
                                         {&Allocation::modules, "LOADEDMODULES"}}) {
    const auto found = environment.find(variable);
    if (found != environment.end()) given.*member = found->second.substr(0, kMostText);
  }
  return given;
}

RunRecord record_of_failure(const RunRequest& request, const std::string& line) {
  RunRecord record = make_record(
      UnfinishedRun{request.target, request.workload, request.parameters, "failed", line});
  record.identity = identity_hash(record.workload, record.parameters);
  record.layout = layout_facts(request.config.place.layout, request.config.threads);
  record.provenance = build_facts(request.command);
  return record;
}

}  // namespace

RunRecord make_record(const RunRequest& request, const RunFacts& facts,
                      const TrainingOutcome& outcome) {
  RunRecord record = begin_record(request.target, request.workload, request.parameters);
  record.identity = identity_hash(record.workload, record.parameters);
  record.layout = layout_facts(facts.layout, facts.threads);
  record.provenance = collect_provenance(request, facts, outcome);
  *record.timing = outcome.timing;
  *record.throughput = collect_throughput(outcome);
  *record.each_rank = collect_ranks(facts, outcome);
  *record.straggler = outcome.straggler;
  record.input = collect_input(facts, outcome);
  const CheckpointFacts& checkpoints = outcome.checkpoints;
  if (checkpoints.written + checkpoints.failed > 0 || outcome.resumed) {
    *record.checkpoints = checkpoints;
  }
  if (outcome.trace) *record.trace = outcome.trace->facts;
  record.plan = outcome.plan;
  record.utilization = facts.gpus.utilization;
  record.gpus = facts.gpus.each;
  record.energy = facts.energy;
  record.probe = outcome.probe;
  record.quality = outcome.quality;
  record.quality.until = collect_goal(request, outcome);
  record.flags = {outcome.resumed,           facts.oversubscribed, facts.gpus.throttled,
                  outcome.trace.has_value(), facts.synthetic,      record.flags.sequential};
  return record;
}

// Rank by rank, so that the text of all never stands in memory at once.
std::string compressed_samples(const TrainingOutcome& outcome) {
  std::string parts, lines;
  for (std::size_t r = 0; r < outcome.ranks.size(); ++r) {
    add_step_lines(static_cast<int>(r), outcome.ranks[r].steps, lines);
    if (lines.size() < kPartBytes && r + 1 < outcome.ranks.size()) continue;
    parts += gzip(lines);
    lines.clear();
  }
  return parts;
}

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads) {
  LayoutFacts facts = layout_facts(layout);
  facts.compute_threads = threads.compute;
  facts.input_threads = threads.input;
  facts.comm_threads = threads.comm;
  return facts;
}

Provenance build_facts(const std::vector<std::string>& command) {
  const Build made = build();
  return {.version = made.version,
          .commit = made.commit,
          .dirty = made.dirty,
          .compiler = made.compiler,
          .compiler_flags = made.compiler_flags,
          .command = shell_quote(command),
          .allocation = find_allocation(environment_of_process())};
}

std::optional<ScreenedFacts> find_screened() {
  const std::string folder = environment_value(environment_of_process(), "PACELINE_SCREEN");
  if (folder.empty()) return std::nullopt;
  try {
    const MachineScreen screen = read_screen(folder);
    return screened_facts(screen, judge_screen(screen));
  } catch (const Error& error) {
    log::warning("the record has no screen: {}", error.what());
    return std::nullopt;
  }
}

void write_failed_record(const RunRequest& request, int code, const std::string& line) noexcept {
  const std::filesystem::path& record = request.target.file;
  const bool by_request = code == exit_code(ErrorKind::preempted) || code >= 128;
  if (record.empty() || code == 0 || by_request || code == exit_code(ErrorKind::usage)) return;
  try {
    const auto folder = record.has_parent_path() ? record.parent_path() : ".";
    if (std::filesystem::exists(record) || !std::filesystem::is_directory(folder)) return;
    write_record_file(failed_record_name(record), to_json(record_of_failure(request, line)), "");
  } catch (const std::exception& error) {
    log::warning("the record of the failure could not be written: {}", error.what());
  }
}

}  // namespace paceline
