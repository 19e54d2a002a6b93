// The run record, schema 1, as plain structs: what every writer fills and every reader reads.
// README.md of this folder shows it as JSON; record_fields.h has the key and the range of each
// member.
//
// Units are in the names; seconds are of the whole run unless they say otherwise. What is empty or
// without a value is not known, or does not apply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/layout.h"
#include "results/parameters.h"

namespace paceline {

constexpr int kRecordSchema = 1;

// As Slurm's environment has it.
struct Allocation {
  std::string job, array_job, array_element, restarts, cluster, partition, nodes;
  std::string node;  // of the rank that writes
  std::string tasks_per_node, cpus_per_node, cpus_per_task, memory_mb_per_node, memory_mb_per_cpu;
  std::string gpus, modules;
  std::optional<int> other_jobs;  // most on a node at the start, or here at the end
};

// Of a node: hardware threads, usable or not.
struct NodeFacts {
  std::optional<int> cpus;
  std::optional<std::int64_t> memory_bytes;
};

// How busy others kept the CPUs of the run. Shares are of their time.
struct LoadFacts {
  std::optional<bool> busy;
  std::string why;
  std::optional<double> seconds, other_cpu_share, worst_other_cpu_share, steal_share;
  std::optional<double> cpu_limited_share, cpu_pressure_share, load_average;
  std::optional<std::int64_t> runnable_tasks_before, runnable_tasks_after, involuntary_switches;
  std::optional<std::int64_t> heat_slowdowns;
  std::optional<double> least_mhz, involuntary_switches_per_step;
};

struct Provenance {
  std::string version, commit;
  std::optional<bool> dirty;
  std::string compiler, compiler_flags, command;
  std::optional<Allocation> allocation;
  std::string libraries;
  std::vector<std::string> hosts;  // a rank
  std::string cpu_model;
  NodeFacts machine;
  std::vector<std::string> affinity;  // a rank: "0-3"
  std::string data_set, data_hash, weights_hash, backend_asked, backend_used;
  std::vector<std::string> implementations;
  std::string started_at;
  LoadFacts machine_load;
  std::optional<bool> fell_back;
  // Published: where, and what its numbers mean.
  std::string source, stack, hardware, time_is, rate_is, same_work_as;
};

struct LayoutFacts {
  std::optional<int> nodes, ntasks, cpus_per_task;
  int gpus = 1;  // replicas in all
  std::optional<int> cpus_per_replica;
  std::string replicas_are = "cores";  // or "gpus"
  std::optional<int> compute_threads, input_threads, comm_threads;
};

// Of one rank, after the warm-up.
struct StepQuantiles {
  std::optional<double> p05, p50, p95, p99, max;
};

struct Timing {
  std::optional<double> fit_seconds, first_epoch_seconds;
  std::vector<double> epoch_seconds;
  std::optional<double> evaluation_seconds, checkpoint_seconds, events_seconds, consistency_seconds;
  std::optional<double> setup_seconds, compile_seconds;
  std::optional<std::int64_t> warmup_steps_excluded;
  std::vector<StepQuantiles> step_seconds;  // a rank

  double whole_seconds() const;  // of the fit and what is beside it, as far as known
};

struct Throughput {
  std::optional<double> samples_per_second;
  std::optional<std::int64_t> warmup_steps_excluded;
  std::optional<double> samples, steps;  // a published mean of steps need not be whole
};

// Of one rank, in the whole fit.
struct PhaseSeconds {
  double input = 0, forward = 0, backward = 0, communication = 0, update = 0, other = 0, step = 0;
  double communication_hidden = 0;
};

struct StragglerFacts {
  int rank = 0;
  std::string host, phase;
  std::optional<double> excess_seconds_per_step, share_of_step;
};

// Over all ranks; seconds are of threads, summed.
struct InputCountFacts {
  std::optional<std::int64_t> fetched, from_cache, decoded, read_bytes, decoded_bytes;
  std::optional<double> read_seconds, decode_seconds, resize_seconds;
};

struct InputFacts {
  std::vector<double> ready_batches;  // a rank
  std::optional<bool> cold;           // false: the files lay in the page cache
  std::optional<double> resident_share, stage_seconds;
  std::optional<std::int64_t> staged_bytes;
  std::optional<bool> staged_before;
  // Of encoded images.
  std::string cache, pixels;
  std::optional<std::int64_t> cache_shared, cache_budget_bytes, cached_bytes, cached_in_file_bytes;
  InputCountFacts counts;  // its keys stand beside these
  InputCountFacts first_epoch, evaluation;
  std::optional<std::int64_t> bad_samples;
  std::vector<std::string> bad_places;
  std::optional<std::int64_t> lost_records;
  std::vector<std::string> lost_places;
};

struct CheckpointFacts {
  std::int64_t written = 0, failed = 0, bytes = 0;
  double blocked_seconds = 0, background_seconds = 0;
  std::optional<double> step_slowdown;
  std::int64_t resumed_after_steps = 0;
};

struct TraceFacts {
  std::int64_t spans = 0, dropped = 0;
  double communication_seconds = 0, hidden_seconds = 0, overlap = 0;
  double clock_uncertainty_seconds = 0, overhead_seconds = 0;
};

struct MemoryFacts {
  std::optional<std::int64_t> activations, parameters_gradients_state, statistics, scratch, total;
};

struct PlanFacts {
  std::optional<std::int64_t> parameter_count;
  std::optional<double> flops_per_sample;
  std::vector<std::int64_t> buckets_bytes;
  MemoryFacts memory_bytes;
  std::optional<bool> gradients_in_backend_memory, overlapped;
  std::optional<double> global_batch, learning_rate;
};

struct GpuFacts {
  std::string name, pci, uuid, driver;
  std::optional<std::int64_t> samples;
  std::optional<double> seconds;
  std::vector<std::string> clock_limits;  // that held clocks down in some sample: "power cap"
  std::optional<double> utilization, memory_utilization;
  std::optional<double> sm_mhz, least_sm_mhz, most_sm_mhz, memory_mhz, watts, watts_limit, joules,
      celsius;
  std::optional<std::int64_t> memory_bytes, memory_bytes_total, uncorrected_errors;
  std::optional<double> power_capped_share;
  std::optional<bool> ecc, mig, mps;
  std::string compute_mode;
  std::optional<bool> throttled;
};

struct ProbeFacts {
  std::optional<double> flops_per_second, bytes_per_second;
};

struct EpochFacts {
  std::optional<double> train_loss, train_accuracy, test_loss, test_accuracy, train_top5, test_top5;
  std::optional<std::int64_t> epoch;  // from 1, where some are left out
};

struct GoalFacts {
  std::string goal;
  std::optional<bool> reached;
  std::optional<double> epochs, steps, fit_seconds, seconds_with_evaluation;
};

struct QualityFacts {
  std::vector<EpochFacts> epochs;  // a loss that is no number is NaN
  std::string parameter_checksum;
  std::optional<double> test_accuracy, test_top5;  // 0 to 1
  std::optional<GoalFacts> until;
};

struct CollectiveRow {
  std::int64_t bytes = 0, count = 0;
  std::optional<std::int64_t> samples, calls_a_sample;
  double seconds = 0;
  std::optional<double> seconds_min, seconds_p95, algbw_bytes_per_second, busbw_bytes_per_second;
  std::optional<std::int64_t> wrong;
  std::string label;  // "bucket 3"
  std::optional<double> memcpy_seconds, library_seconds;
  std::string first_wrong;
};

struct CollectiveFacts {
  std::string operation, dtype, library;
  std::optional<std::int64_t> rounds;
  std::string note;
  std::vector<CollectiveRow> rows;
};

struct RunFlags {
  bool resumed = false, oversubscribed = false, throttled = false, traced = false;
  bool synthetic = false;
};

// The step samples beside the record.
struct SamplesFile {
  std::string file, xxh3;
  std::int64_t bytes = 0;
};

struct RunRecord {
  std::string kind = "measured";  // published, predicted, imported, collective
  std::string study, point;       // Point::text() of the axes that vary
  int repeat = 1, attempt = 1;
  std::string session;
  int round = 0;
  std::string status = "completed";  // failed, timeout, preempted
  std::string reason;
  std::string workload;
  Point parameters;      // every known parameter that the record gives
  bool control = false;  // made to be compared with runs of an equal point, never a result
  std::string identity;
  LayoutFacts layout;
  Provenance provenance;
  Timing timing;
  Throughput throughput;
  std::vector<PhaseSeconds> phases;  // a rank
  std::optional<StragglerFacts> straggler;
  InputFacts input;
  std::optional<CheckpointFacts> checkpoints;
  std::optional<TraceFacts> trace;
  PlanFacts plan;
  std::optional<double> utilization;  // of GPUs: mean over the run and over them, 0 to 1
  std::vector<GpuFacts> gpus;
  ProbeFacts probe;  // what this machine can do, beside the run
  QualityFacts quality;
  std::optional<CollectiveFacts> collective;
  RunFlags flags;
  std::optional<SamplesFile> samples;

  bool completed() const { return status == "completed"; }
  std::string build() const;  // version, commit and dirty flag
  Layout task_layout() const;
};

LayoutFacts layout_facts(const Layout& layout);

// Reals that are not whole have seven significant digits: more would be noise.
Json to_json(const RunRecord& record);
Json to_json(const GpuFacts& gpu);

// Throw input with `where` and the key: a newer schema, a missing member, a wrong type, a value out
// of its range. Keys that are not known are passed over.
RunRecord run_record_of(const Json& json, const std::string& where);
GpuFacts gpu_facts_of(const Json& json, const std::string& where);

}  // namespace paceline
