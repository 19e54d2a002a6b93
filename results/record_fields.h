// The members of a run record: under which key each stands, and what it may be. One list, from
// which records are written, read and checked.
#pragma once

#include <limits>

#include "results/run_record.h"

namespace paceline {

struct Range {
  double least = 0;
  bool above = false;     // `least` itself is too small
  bool share = false;     // from 0 to 1
  bool required = false;  // a record without it is refused
};

inline constexpr Range kAny{.least = -std::numeric_limits<double>::infinity()};
inline constexpr Range kShare{.share = true};
inline constexpr Range kPositive{.above = true};
inline constexpr Range kCount{.least = 1};
inline constexpr Range kRequired{.required = true};
inline constexpr Range kRequiredCount{.least = 1, .required = true};
inline constexpr Range kRequiredPositive{.above = true, .required = true};

// each(key, member[, range]) for every member in the order of the file. `always`: written even
// where it is empty. `beside`: a struct whose keys stand among those around it. `loss`: NaN is
// written as null.

template <typename Each>
void fields(Each& each, Allocation& x) {
  each("job", x.job);
  each("array_job", x.array_job);
  each("array_element", x.array_element);
  each("restarts", x.restarts);
  each("cluster", x.cluster);
  each("partition", x.partition);
  each("nodes", x.nodes);
  each("node", x.node);
  each("tasks_per_node", x.tasks_per_node);
  each("cpus_per_node", x.cpus_per_node);
  each("cpus_per_task", x.cpus_per_task);
  each("memory_mb_per_node", x.memory_mb_per_node);
  each("memory_mb_per_cpu", x.memory_mb_per_cpu);
  each("gpus", x.gpus);
  each("modules", x.modules);
  each("other_jobs", x.other_jobs);
}

template <typename Each>
void fields(Each& each, NodeFacts& x) {
  each("cpus", x.cpus);
  each("memory_bytes", x.memory_bytes);
}

template <typename Each>
void fields(Each& each, LoadFacts& x) {
  each("busy", x.busy);
  each("why", x.why);
  each("seconds", x.seconds);
  each("other_cpu_share", x.other_cpu_share, kShare);
  each("worst_other_cpu_share", x.worst_other_cpu_share, kShare);
  each("steal_share", x.steal_share, kShare);
  each("cpu_limited_share", x.cpu_limited_share);
  each("cpu_pressure_share", x.cpu_pressure_share);
  each("load_average", x.load_average);
  each("runnable_tasks_before", x.runnable_tasks_before);
  each("runnable_tasks_after", x.runnable_tasks_after);
  each("involuntary_switches", x.involuntary_switches);
  each("heat_slowdowns", x.heat_slowdowns);
  each("least_mhz", x.least_mhz);
  each("involuntary_switches_per_step", x.involuntary_switches_per_step);
}

template <typename Each>
void fields(Each& each, Provenance& x) {
  each("version", x.version);
  each("commit", x.commit);
  each("dirty", x.dirty);
  each("compiler", x.compiler);
  each("compiler_flags", x.compiler_flags);
  each("command", x.command);
  each("allocation", x.allocation);
  each("libraries", x.libraries);
  each("hosts", x.hosts);
  each("cpu_model", x.cpu_model);
  each("machine", x.machine);
  each("affinity", x.affinity);
  each("data_set", x.data_set);
  each("data_hash", x.data_hash);
  each("weights_hash", x.weights_hash);
  each("backend_asked", x.backend_asked);
  each("backend_used", x.backend_used);
  each("implementations", x.implementations);
  each("started_at", x.started_at);
  each("machine_load", x.machine_load);
  each("fell_back", x.fell_back);
  each("source", x.source);
  each("stack", x.stack);
  each("hardware", x.hardware);
  each("time_is", x.time_is);
  each("rate_is", x.rate_is);
  each("same_work_as", x.same_work_as);
}

template <typename Each>
void fields(Each& each, LayoutFacts& x) {
  each("nodes", x.nodes, kCount);
  each("ntasks", x.ntasks, kCount);
  each("cpus_per_task", x.cpus_per_task, kCount);
  each("gpus", x.gpus, kRequiredCount);
  each("cpus_per_replica", x.cpus_per_replica);
  each("replicas_are", x.replicas_are);
  each("compute_threads", x.compute_threads);
  each("input_threads", x.input_threads);
  each("comm_threads", x.comm_threads);
}

template <typename Each>
void fields(Each& each, StepQuantiles& x) {
  each("p05", x.p05);
  each("p50", x.p50);
  each("p95", x.p95);
  each("p99", x.p99);
  each("max", x.max);
}

template <typename Each>
void fields(Each& each, Timing& x) {
  each("fit_seconds", x.fit_seconds, kPositive);
  each("first_epoch_seconds", x.first_epoch_seconds);
  each("epoch_seconds", x.epoch_seconds);
  each("evaluation_seconds", x.evaluation_seconds);
  each("checkpoint_seconds", x.checkpoint_seconds);
  each("events_seconds", x.events_seconds);
  each("consistency_seconds", x.consistency_seconds);
  each("setup_seconds", x.setup_seconds);
  each("compile_seconds", x.compile_seconds);
  each("warmup_steps_excluded", x.warmup_steps_excluded);
  each("step_seconds", x.step_seconds);
}

template <typename Each>
void fields(Each& each, Throughput& x) {
  each("samples_per_second", x.samples_per_second, kPositive);
  each("warmup_steps_excluded", x.warmup_steps_excluded);
  each("samples", x.samples);
  each("steps", x.steps);
}

template <typename Each>
void fields(Each& each, PhaseSeconds& x) {
  each("input", x.input);
  each("forward", x.forward);
  each("backward", x.backward);
  each("communication", x.communication);
  each("update", x.update);
  each("other", x.other);
  each("step", x.step);
  each("communication_hidden", x.communication_hidden);
}

template <typename Each>
void fields(Each& each, StragglerFacts& x) {
  each("rank", x.rank, kRequired);
  each("host", x.host);
  each("phase", x.phase);
  each("excess_seconds_per_step", x.excess_seconds_per_step, kPositive);
  each("share_of_step", x.share_of_step, kPositive);
}

template <typename Each>
void fields(Each& each, InputCountFacts& x) {
  each("fetched", x.fetched);
  each("from_cache", x.from_cache);
  each("decoded", x.decoded);
  each("read_bytes", x.read_bytes);
  each("decoded_bytes", x.decoded_bytes);
  each("read_seconds", x.read_seconds);
  each("decode_seconds", x.decode_seconds);
  each("resize_seconds", x.resize_seconds);
}

template <typename Each>
void fields(Each& each, InputFacts& x) {
  each("ready_batches", x.ready_batches);
  each("cold", x.cold);
  each("resident_share", x.resident_share, kShare);
  each("stage_seconds", x.stage_seconds);
  each("staged_bytes", x.staged_bytes);
  each("staged_before", x.staged_before);
  each("cache", x.cache);
  each("pixels", x.pixels);
  each("cache_shared", x.cache_shared);
  each("cache_budget_bytes", x.cache_budget_bytes);
  each("cached_bytes", x.cached_bytes);
  each("cached_in_file_bytes", x.cached_in_file_bytes);
  each.beside(x.counts);
  each("first_epoch", x.first_epoch);
  each("evaluation", x.evaluation);
  each("bad_samples", x.bad_samples);
  each("bad_places", x.bad_places);
  each("lost_records", x.lost_records);
  each("lost_places", x.lost_places);
}

template <typename Each>
void fields(Each& each, CheckpointFacts& x) {
  each("written", x.written);
  each("failed", x.failed);
  each("bytes", x.bytes);
  each("blocked_seconds", x.blocked_seconds);
  each("background_seconds", x.background_seconds);
  each("step_slowdown", x.step_slowdown);
  each("resumed_after_steps", x.resumed_after_steps);
}

template <typename Each>
void fields(Each& each, TraceFacts& x) {
  each("spans", x.spans);
  each("dropped", x.dropped);
  each("communication_seconds", x.communication_seconds);
  each("hidden_seconds", x.hidden_seconds);
  each("overlap", x.overlap);
  each("clock_uncertainty_seconds", x.clock_uncertainty_seconds);
  each("overhead_seconds", x.overhead_seconds);
}

template <typename Each>
void fields(Each& each, MemoryFacts& x) {
  each("activations", x.activations);
  each("parameters_gradients_state", x.parameters_gradients_state);
  each("statistics", x.statistics);
  each("scratch", x.scratch);
  each("total", x.total);
}

template <typename Each>
void fields(Each& each, PlanFacts& x) {
  each("parameter_count", x.parameter_count);
  each("flops_per_sample", x.flops_per_sample);
  each("buckets_bytes", x.buckets_bytes);
  each("memory_bytes", x.memory_bytes);
  each("gradients_in_backend_memory", x.gradients_in_backend_memory);
  each("overlapped", x.overlapped);
  each("global_batch", x.global_batch);
  each("learning_rate", x.learning_rate);
}

template <typename Each>
void fields(Each& each, GpuFacts& x) {
  each("name", x.name);
  each("pci", x.pci);
  each("uuid", x.uuid);
  each("driver", x.driver);
  each("samples", x.samples);
  each("seconds", x.seconds);
  each("clock_limits", x.clock_limits);
  each("utilization", x.utilization, kShare);
  each("memory_utilization", x.memory_utilization, kShare);
  each("sm_mhz", x.sm_mhz);
  each("least_sm_mhz", x.least_sm_mhz);
  each("most_sm_mhz", x.most_sm_mhz);
  each("memory_mhz", x.memory_mhz);
  each("watts", x.watts);
  each("watts_limit", x.watts_limit);
  each("joules", x.joules);
  each("celsius", x.celsius, kAny);
  each("memory_bytes", x.memory_bytes);
  each("memory_bytes_total", x.memory_bytes_total);
  each("uncorrected_errors", x.uncorrected_errors);
  each("power_capped_share", x.power_capped_share);
  each("ecc", x.ecc);
  each("mig", x.mig);
  each("mps", x.mps);
  each("compute_mode", x.compute_mode);
  each("throttled", x.throttled);
}

template <typename Each>
void fields(Each& each, ProbeFacts& x) {
  each("flops_per_second", x.flops_per_second);
  each("bytes_per_second", x.bytes_per_second);
}

template <typename Each>
void fields(Each& each, EpochFacts& x) {
  each.loss("train_loss", x.train_loss);
  each("train_accuracy", x.train_accuracy);
  each.loss("test_loss", x.test_loss);
  each("test_accuracy", x.test_accuracy);
  each("train_top5", x.train_top5);
  each("test_top5", x.test_top5);
  each("epoch", x.epoch);
}

template <typename Each>
void fields(Each& each, GoalFacts& x) {
  each("goal", x.goal);
  each("reached", x.reached);
  each("epochs", x.epochs, kPositive);
  each("steps", x.steps, kPositive);
  each("fit_seconds", x.fit_seconds, kPositive);
  each("seconds_with_evaluation", x.seconds_with_evaluation, kPositive);
}

template <typename Each>
void fields(Each& each, QualityFacts& x) {
  each("epochs", x.epochs);
  each("parameter_checksum", x.parameter_checksum);
  each("test_accuracy", x.test_accuracy, kShare);
  each("test_top5", x.test_top5, kShare);
  each("until", x.until);
}

template <typename Each>
void fields(Each& each, CollectiveRow& x) {
  each("bytes", x.bytes, kRequiredPositive);
  each("count", x.count, kRequiredPositive);
  each("samples", x.samples);
  each("calls_a_sample", x.calls_a_sample);
  each("seconds", x.seconds, kRequiredPositive);
  each("seconds_min", x.seconds_min, kPositive);
  each("seconds_p95", x.seconds_p95, kPositive);
  each("algbw_bytes_per_second", x.algbw_bytes_per_second, kPositive);
  each("busbw_bytes_per_second", x.busbw_bytes_per_second);
  each("wrong", x.wrong);
  each("label", x.label);
  each("memcpy_seconds", x.memcpy_seconds, kPositive);
  each("library_seconds", x.library_seconds, kPositive);
  each("first_wrong", x.first_wrong);
}

template <typename Each>
void fields(Each& each, CollectiveFacts& x) {
  each("operation", x.operation);
  each("dtype", x.dtype);
  each("library", x.library);
  each("rounds", x.rounds);
  each("note", x.note);
  each("rows", x.rows);
}

template <typename Each>
void fields(Each& each, RunFlags& x) {
  each("resumed", x.resumed);
  each("oversubscribed", x.oversubscribed);
  each("throttled", x.throttled);
  each("traced", x.traced);
  each("synthetic", x.synthetic);
}

template <typename Each>
void fields(Each& each, SamplesFile& x) {
  each("file", x.file);
  each("xxh3", x.xxh3);
  each("bytes", x.bytes);
}

// Its schema, workload and parameters stand between these: see run_record.cpp.
template <typename Each>
void beginning(Each& each, RunRecord& x) {
  each.always("kind", x.kind);
  each.always("study", x.study);
  each.always("point", x.point);
  each("repeat", x.repeat, kRequiredCount);
  each("attempt", x.attempt, kRequiredCount);
  each.always("session", x.session);
  each("round", x.round);
  each.always("status", x.status);
  each.always("reason", x.reason);
}

template <typename Each>
void sections(Each& each, RunRecord& x) {
  each.always("identity", x.identity);
  each("layout", x.layout, kRequired);
  each("provenance", x.provenance);
  each("timing", x.timing);
  each("throughput", x.throughput);
  each("phases", x.phases);
  each("straggler", x.straggler);
  each("input", x.input);
  each("checkpoints", x.checkpoints);
  each("trace", x.trace);
  each("plan", x.plan);
  each("utilization", x.utilization, kShare);
  each("gpus", x.gpus);
  each("probe", x.probe);
  each("quality", x.quality);
  each("collective", x.collective);
  each("flags", x.flags);
  each("samples", x.samples);
}

}  // namespace paceline
