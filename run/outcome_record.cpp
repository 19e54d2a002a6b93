#include "run/outcome_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/train/config.h"
#include "engine/train/outcome.h"
#include "results/step_samples.h"
#include "results/store.h"
#include "run/plan_study.h"
#include "run/version.h"

namespace paceline {

namespace {

constexpr std::size_t kPartBytes = std::size_t{16} << 20;  // of samples, compressed at once

Provenance collect_provenance(const RunRequest& request, const RunFacts& facts,
                              const TrainingOutcome& outcome) {
  Provenance made = build_facts(request.command);
  made.libraries = outcome.device_description;
  made.hosts = facts.hosts;
  made.cpu_model = facts.cpu_model;
  if (facts.machine_cpus > 0) made.machine.cpus = facts.machine_cpus;
  if (facts.memory_bytes > 0) made.machine.memory_bytes = facts.memory_bytes;
  made.affinity = facts.affinity;
  made.data_set = facts.data_set;
  made.data_hash = facts.data_hash;
  made.weights_hash = facts.weights_hash;
  made.backend_requested = request.config.place.backend;
  made.backend_used = facts.backend_used;
  made.implementations = outcome.implementations;
  made.started_at = facts.started_at;
  made.machine_load = facts.machine_load;
  if (made.machine_load.involuntary_switches && outcome.steps > 0) {
    made.machine_load.involuntary_switches_per_step =
        static_cast<double>(*made.machine_load.involuntary_switches) /
        static_cast<double>(outcome.steps);
  }
  if (environment_of_process().count("PACELINE_FELL_BACK") > 0) made.fell_back = true;
  if (facts.other_jobs >= 0) {
    if (!made.allocation) made.allocation.emplace();
    made.allocation->other_jobs = facts.other_jobs;
  }
  return made;
}

StepQuantiles quantiles_after(const RankTimes& rank, std::size_t warmup) {
  std::vector<double> totals;
  for (std::size_t i = warmup; i < rank.steps.size(); ++i) {
    totals.push_back(static_cast<double>(rank.steps[i].total));
  }
  return step_quantiles(std::move(totals));
}

PhaseSeconds collect_phases(const RankTimes& rank) {
  std::array<double, kPhases> sums{};
  PhaseSeconds row;
  for (const StepTimes& times : rank.steps) {
    for (std::size_t p = 0; p < kPhases; ++p) sums[p] += static_cast<double>(times.seconds[p]);
    row.step += static_cast<double>(times.total);
  }
  const auto of = [&](Phase phase) { return sums[static_cast<std::size_t>(phase)]; };
  row.input = of(Phase::input);
  row.forward = of(Phase::forward);
  row.backward = of(Phase::backward);
  row.communication = of(Phase::communication);
  row.update = of(Phase::update);
  row.other = of(Phase::other);
  row.communication_hidden = std::max(0.0, rank.communication_busy - row.communication);
  return row;
}

Timing collect_timing(const TrainingOutcome& outcome) {
  const std::size_t warmup = count_warmup(outcome);
  Timing timing;
  timing.fit_seconds = outcome.fit_seconds;
  timing.first_epoch_seconds = outcome.epoch_seconds.front();
  timing.epoch_seconds = outcome.epoch_seconds;
  timing.evaluation_seconds = outcome.evaluation_seconds;
  timing.checkpoint_seconds = outcome.checkpoints.blocked_seconds;
  timing.events_seconds = outcome.events_seconds;
  timing.consistency_seconds = outcome.consistency_seconds;
  timing.setup_seconds = outcome.setup_seconds;
  timing.compile_seconds = outcome.compile_seconds;
  timing.warmup_steps_excluded = warmup;
  for (const RankTimes& rank : outcome.ranks) {
    timing.step_seconds.push_back(quantiles_after(rank, warmup));
  }
  return timing;
}

Throughput collect_throughput(const TrainingOutcome& outcome) {
  Throughput rate;
  rate.samples_per_second = samples_per_second(outcome);
  rate.warmup_steps_excluded = count_warmup(outcome);
  rate.samples = static_cast<double>(outcome.samples);
  rate.steps = static_cast<double>(outcome.steps);
  return rate;
}

StragglerFacts collect_straggler(const RunFacts& facts, const Straggler& straggler) {
  const auto rank = static_cast<std::size_t>(straggler.rank);
  return {straggler.rank, rank < facts.hosts.size() ? facts.hosts[rank] : "",
          kPhaseNames[static_cast<std::size_t>(straggler.phase)], straggler.excess_seconds_per_step,
          straggler.share_of_step};
}

std::optional<GoalFacts> collect_goal(const RunRequest& request, const TrainingOutcome& outcome) {
  const std::optional<Goal>& until = request.config.train.until;
  if (!until) return std::nullopt;
  GoalFacts goal;
  goal.goal = until->text();
  goal.reached = outcome.goal_reached;
  goal.epochs = static_cast<double>(outcome.epochs.size());
  goal.steps = static_cast<double>(outcome.resumed_after + outcome.steps);
  if (outcome.goal_reached && !outcome.resumed) {
    goal.fit_seconds = outcome.fit_seconds;
    goal.seconds_with_evaluation = outcome.fit_seconds + outcome.evaluation_seconds;
  }
  return goal;
}

// Negative: not evaluated.
std::optional<double> if_known(double value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

QualityFacts collect_quality(const RunRequest& request, const TrainingOutcome& outcome) {
  QualityFacts quality;
  for (const EpochQuality& epoch : outcome.epochs) {
    const bool evaluated = epoch.test_accuracy >= 0;
    quality.epochs.push_back({epoch.train_loss, epoch.train_accuracy,
                              evaluated ? std::optional(epoch.test_loss) : std::nullopt,
                              if_known(epoch.test_accuracy), if_known(epoch.train_top5),
                              if_known(epoch.test_top5), std::nullopt});
  }
  quality.parameter_checksum = to_hex(outcome.parameter_checksum);
  quality.test_accuracy = if_known(outcome.epochs.back().test_accuracy);
  quality.test_top5 = if_known(outcome.epochs.back().test_top5);
  quality.until = collect_goal(request, outcome);
  return quality;
}

// Nothing where the run neither wrote checkpoints nor went on from one.
std::optional<CheckpointFacts> collect_checkpoints(const TrainingOutcome& outcome) {
  const CheckpointTimes& times = outcome.checkpoints;
  if (times.written + times.failed == 0 && !outcome.resumed) return std::nullopt;
  CheckpointFacts facts;
  facts.written = times.written;
  facts.failed = times.failed;
  facts.bytes = times.bytes;
  facts.blocked_seconds = times.blocked_seconds;
  facts.background_seconds = times.background_seconds;
  if (times.slowdown > 0) facts.step_slowdown = times.slowdown;
  facts.resumed_after_steps = outcome.resumed_after;
  return facts;
}

TraceFacts collect_trace(const TraceOutcome& trace) {
  const Overlap all = trace.all();
  TraceFacts facts;
  facts.spans = trace.spans;
  facts.dropped = trace.dropped;
  facts.communication_seconds = all.communication;
  facts.hidden_seconds = all.hidden;
  facts.overlap = all.share();
  facts.clock_uncertainty_seconds = trace.clock_uncertainty;
  facts.overhead_seconds = trace.overhead_seconds;
  return facts;
}

PlanFacts collect_plan(const TrainingOutcome& outcome) {
  PlanFacts plan;
  plan.parameter_count = outcome.parameter_count;
  plan.flops_per_sample = outcome.flops_per_sample;
  plan.bucket_bytes.assign(outcome.bucket_bytes.begin(), outcome.bucket_bytes.end());
  for (const ReadyGradients& ready : outcome.gradients) {
    plan.gradients.push_back({static_cast<std::int64_t>(ready.bytes), if_known(ready.seconds)});
  }
  plan.memory_bytes.activations = outcome.memory.activations;
  plan.memory_bytes.parameters_gradients_state =
      outcome.memory.parameters + outcome.memory.gradients + outcome.memory.moments;
  plan.memory_bytes.statistics = outcome.memory.statistics;
  plan.memory_bytes.scratch = outcome.memory.scratch;
  plan.memory_bytes.total = outcome.memory.total();
  plan.gradients_in_backend_memory = outcome.gradients_in_backend_memory;
  plan.overlapped = outcome.overlapped;
  plan.global_batch = static_cast<double>(outcome.global_batch);
  plan.learning_rate = outcome.learning_rate;
  return plan;
}

}  // namespace

RunRecord make_record(const RunRequest& request, const RunFacts& facts,
                      const TrainingOutcome& outcome) {
  RunRecord record = record_beginning(request.target, request.workload, request.parameters);
  record.layout = layout_facts(facts.layout, facts.threads);
  record.provenance = collect_provenance(request, facts, outcome);
  record.timing = collect_timing(outcome);
  record.throughput = collect_throughput(outcome);
  for (const RankTimes& rank : outcome.ranks) record.phases.push_back(collect_phases(rank));
  if (outcome.straggler) record.straggler = collect_straggler(facts, *outcome.straggler);
  record.input = collect_input(facts, outcome);
  record.checkpoints = collect_checkpoints(outcome);
  if (outcome.trace) record.trace = collect_trace(*outcome.trace);
  record.plan = collect_plan(outcome);
  record.utilization = facts.gpus.utilization;
  record.gpus = facts.gpus.each;
  record.energy = facts.energy;
  if (outcome.probe_flops_per_second > 0) {  // else the device had no room to measure it
    record.probe = {outcome.probe_flops_per_second, outcome.probe_bytes_per_second};
  }
  record.quality = collect_quality(request, outcome);
  record.flags = {outcome.resumed,           facts.oversubscribed, facts.gpus.throttled,
                  outcome.trace.has_value(), facts.synthetic,      record.flags.sequential};
  return record;
}

// Rank by rank, so that the text of all never stands in memory at once.
std::string compressed_samples(const TrainingOutcome& outcome) {
  std::string parts;
  fmt::memory_buffer lines;
  for (std::size_t r = 0; r < outcome.ranks.size(); ++r) {
    for (std::size_t s = 0; s < outcome.ranks[r].steps.size(); ++s) {
      const StepTimes& times = outcome.ranks[r].steps[s];
      fmt::format_to(std::back_inserter(lines), "{{\"rank\":{},\"step\":{},\"total\":{:.4g}", r, s,
                     times.total);
      for (std::size_t p = 0; p < kPhases; ++p) {
        fmt::format_to(std::back_inserter(lines), ",\"{}\":{:.4g}", kPhaseNames[p],
                       times.seconds[p]);
      }
      fmt::format_to(std::back_inserter(lines), "}}\n");
    }
    if (lines.size() < kPartBytes && r + 1 < outcome.ranks.size()) continue;
    parts += gzip({lines.data(), lines.size()});
    lines.clear();
  }
  return parts;
}

namespace {

constexpr double kColdBelow = 0.5;  // share of the files in the page cache

const char* to_string(CacheKind kind) {
  return kind == CacheKind::off ? "off" : kind == CacheKind::raw ? "raw" : "decoded";
}

InputCountFacts collect_counts(const InputCounts& counts) {
  InputCountFacts facts;
  facts.fetched = counts.fetched;
  facts.from_cache = counts.from_cache;
  facts.decoded = counts.decoded;
  facts.read_bytes = counts.read_bytes;
  facts.decoded_bytes = counts.decoded_bytes;
  facts.read_seconds = counts.read_seconds;
  facts.decode_seconds = counts.decode_seconds;
  facts.resize_seconds = counts.resize_seconds;
  return facts;
}

void add_decoding(InputFacts& input, const RunFacts& facts, const InputOutcome& outcome) {
  input.cache = to_string(facts.input.cache);
  input.pixels = facts.input.type == DType::f32 ? "fp32" : "uint8";
  input.cache_shared = facts.input.cache == CacheKind::off ? 0 : facts.cache.ranks;
  input.cache_budget_bytes = facts.cache.bytes;  // of the ranks that share it
  input.cached_bytes = outcome.cached_in_memory;
  input.cached_in_file_bytes = outcome.cached_in_file;
  input.counts = collect_counts(outcome.counts);
  input.first_epoch = collect_counts(outcome.first_epoch);
  input.evaluation = collect_counts(outcome.evaluation);
  input.bad_samples = outcome.bad_samples;
  input.bad_places = outcome.bad_places;
  const LostSummary lost = summarize(facts.lost);
  input.lost_records = lost.records;
  input.lost_places = lost.places;
}

}  // namespace

InputFacts collect_input(const RunFacts& facts, const TrainingOutcome& outcome) {
  InputFacts input;
  for (const RankTimes& rank : outcome.ranks) input.ready_batches.push_back(rank.input_ready);
  if (facts.resident_share) {
    input.cold = *facts.resident_share < kColdBelow;
    input.resident_share = facts.resident_share;
  }
  if (facts.staged_bytes > 0) {
    input.stage_seconds = facts.stage_seconds;
    input.staged_bytes = facts.staged_bytes;
    input.staged_before = facts.staged_before;
  }
  if (facts.decodes) add_decoding(input, facts, outcome.input);
  return input;
}

namespace {

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

}  // namespace

RunRecord record_beginning(const RecordTarget& target, const std::string& workload,
                           const Point& parameters) {
  RunRecord record;
  record.study = target.study;
  record.point = target.point;
  record.repeat = target.repeat;
  record.session = target.session;
  record.round = target.round;
  record.flags.sequential = target.sequential;
  record.workload = workload;
  record.parameters = parameters;
  record.identity = identity_hash(workload, parameters);
  return record;
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
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
  Provenance facts;
  facts.version = made.version;
  facts.commit = made.commit;
  facts.dirty = made.dirty;
  facts.compiler = made.compiler;
  facts.compiler_flags = made.compiler_flags;
  facts.command = join(words, " ");
  facts.allocation = find_allocation(environment_of_process());
  return facts;
}

namespace {

RunRecord record_of_failure(const RunRequest& request, const std::string& line) {
  RunRecord record = record_beginning(request.target, request.workload, request.parameters);
  record.status = "failed";
  record.reason = line;
  record.layout = layout_facts(request.config.place.layout, request.config.threads);
  record.provenance = build_facts(request.command);
  return record;
}

}  // namespace

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
