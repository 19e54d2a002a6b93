#include "run/outcome_record.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/train/goal.h"
#include "engine/train/throughput.h"
#include "results/record.h"
#include "run/input_record.h"
#include "run/record_parts.h"

namespace paceline {

namespace {

Json parameters_json(const RunRequest& request) {
  Json parameters = values_json(request.parameters);
  parameters["workload"] = request.workload;
  return parameters;
}

Json provenance_json(const RunRequest& request, const RunFacts& facts,
                     const TrainingOutcome& outcome) {
  Json provenance = build_json(request.command);
  provenance.update(
      {{"libraries", outcome.device_description},
       {"hosts", facts.hosts},
       {"cpu_model", facts.cpu_model},
       {"machine", {{"cpus", facts.machine_cpus}, {"memory_bytes", facts.memory_bytes}}},
       {"affinity", facts.affinity},
       {"data_set", facts.data_set},
       {"data_hash", facts.data_hash},
       {"weights_hash", facts.weights_hash},
       {"backend_asked", request.config.place.backend},
       {"backend_used", facts.backend_used},
       {"implementations", outcome.implementations},
       {"started_at", facts.started_at}});
  Json& load = provenance["machine_load"] = Json::parse(facts.machine_load);
  if (load.is_object() && load["involuntary_switches"].is_number() && outcome.steps > 0) {
    load["involuntary_switches_per_step"] = round_digits(
        load["involuntary_switches"].get<double>() / static_cast<double>(outcome.steps));
  }
  if (environment_of_process().count("PACELINE_FELL_BACK") > 0) provenance["fell_back"] = true;
  if (facts.other_jobs >= 0) provenance["allocation"]["other_jobs"] = facts.other_jobs;
  return provenance;
}

// Linear interpolation between order statistics.
double quantile(const std::vector<float>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double rest = at - static_cast<double>(low);
  return static_cast<double>(sorted[low]) * (1 - rest) + static_cast<double>(sorted[high]) * rest;
}

Json step_quantiles(const RankTimes& rank, std::size_t warmup) {
  std::vector<float> totals;
  for (std::size_t i = warmup; i < rank.steps.size(); ++i) totals.push_back(rank.steps[i].total);
  std::sort(totals.begin(), totals.end());
  Json row;
  for (const auto& [key, share] :
       {std::pair{"p05", 0.05}, {"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"max", 1.0}}) {
    row[key] = round_digits(quantile(totals, share));
  }
  return row;
}

Json phases_json(const RankTimes& rank) {
  std::array<double, kPhases> sums{};
  double step = 0;
  for (const StepTimes& times : rank.steps) {
    for (std::size_t p = 0; p < kPhases; ++p) sums[p] += static_cast<double>(times.seconds[p]);
    step += static_cast<double>(times.total);
  }
  Json row;
  for (std::size_t p = 0; p < kPhases; ++p) row[kPhaseNames[p]] = round_digits(sums[p]);
  row["step"] = round_digits(step);
  const double exposed = sums[static_cast<std::size_t>(Phase::communication)];
  row["communication_hidden"] = round_digits(std::max(0.0, rank.communication_busy - exposed));
  return row;
}

Json timing_json(const TrainingOutcome& outcome) {
  const std::size_t warmup = warmup_of(outcome);
  Json epochs = Json::array(), quantiles = Json::array();
  for (const double seconds : outcome.epoch_seconds) epochs.push_back(round_digits(seconds));
  for (const RankTimes& rank : outcome.ranks) quantiles.push_back(step_quantiles(rank, warmup));
  return {{"fit_seconds", round_digits(outcome.fit_seconds)},
          {"first_epoch_seconds", round_digits(outcome.epoch_seconds.front())},
          {"epoch_seconds", epochs},
          {"evaluation_seconds", round_digits(outcome.evaluation_seconds)},
          {"checkpoint_seconds", round_digits(outcome.checkpoints.blocked_seconds)},
          {"events_seconds", round_digits(outcome.events_seconds)},
          {"consistency_seconds", round_digits(outcome.consistency_seconds)},
          {"setup_seconds", round_digits(outcome.setup_seconds)},
          {"compile_seconds", round_digits(outcome.compile_seconds)},
          {"warmup_steps_excluded", warmup},
          {"step_seconds", quantiles}};
}

Json straggler_json(const RunFacts& facts, const TrainingOutcome& outcome) {
  if (!outcome.straggler) return nullptr;
  const Straggler& straggler = *outcome.straggler;
  const auto rank = static_cast<std::size_t>(straggler.rank);
  return {{"rank", straggler.rank},
          {"host", rank < facts.hosts.size() ? facts.hosts[rank] : ""},
          {"phase", kPhaseNames[static_cast<std::size_t>(straggler.phase)]},
          {"excess_seconds_per_step", round_digits(straggler.excess_seconds_per_step)},
          {"share_of_step", round_digits(straggler.share_of_step)}};
}

// Null where the run had no goal.
Json goal_json(const RunRequest& request, const TrainingOutcome& outcome) {
  const std::optional<Goal>& until = request.config.train.until;
  if (!until) return nullptr;
  const bool timed = outcome.goal_reached && !outcome.resumed;
  const double all = outcome.fit_seconds + outcome.evaluation_seconds;
  return {{"goal", until->text()},
          {"reached", outcome.goal_reached},
          {"epochs", outcome.epochs.size()},
          {"steps", outcome.resumed_after + outcome.steps},
          {"fit_seconds", timed ? Json(round_digits(outcome.fit_seconds)) : nullptr},
          {"seconds_with_evaluation", timed ? Json(round_digits(all)) : nullptr}};
}

Json quality_json(const RunRequest& request, const TrainingOutcome& outcome) {
  Json epochs = Json::array();
  for (const EpochQuality& epoch : outcome.epochs) {
    Json row = {{"train_loss", round_digits(epoch.train_loss)},
                {"train_accuracy", round_digits(epoch.train_accuracy)}};
    if (epoch.test_accuracy >= 0) {
      row["test_loss"] = round_digits(epoch.test_loss);
      row["test_accuracy"] = round_digits(epoch.test_accuracy);
    }
    if (epoch.train_top5 >= 0) row["train_top5"] = round_digits(epoch.train_top5);
    if (epoch.test_top5 >= 0) row["test_top5"] = round_digits(epoch.test_top5);
    epochs.push_back(row);
  }
  Json quality = {{"epochs", epochs}, {"parameter_checksum", to_hex(outcome.parameter_checksum)}};
  if (outcome.epochs.back().test_accuracy >= 0) {
    quality["test_accuracy"] = round_digits(outcome.epochs.back().test_accuracy);
  }
  if (outcome.epochs.back().test_top5 >= 0) {
    quality["test_top5"] = round_digits(outcome.epochs.back().test_top5);
  }
  quality["until"] = goal_json(request, outcome);
  return quality;
}

// Null where the run neither wrote checkpoints nor went on from one.
Json checkpoints_json(const TrainingOutcome& outcome) {
  const CheckpointTimes& times = outcome.checkpoints;
  if (times.written + times.failed == 0 && !outcome.resumed) return nullptr;
  return {{"written", times.written},
          {"failed", times.failed},
          {"bytes", times.bytes},
          {"blocked_seconds", round_digits(times.blocked_seconds)},
          {"background_seconds", round_digits(times.background_seconds)},
          {"step_slowdown", times.slowdown > 0 ? Json(round_digits(times.slowdown)) : nullptr},
          {"resumed_after_steps", outcome.resumed_after}};
}

// Null where the run was not traced.
Json trace_json(const TrainingOutcome& outcome) {
  if (!outcome.trace) return nullptr;
  const TraceOutcome& trace = *outcome.trace;
  const Overlap all = trace.all();
  return {{"spans", trace.spans},
          {"dropped", trace.dropped},
          {"communication_seconds", round_digits(all.communication)},
          {"hidden_seconds", round_digits(all.hidden)},
          {"overlap", round_digits(all.share())},
          {"clock_uncertainty_seconds", round_digits(trace.clock_uncertainty)},
          {"overhead_seconds", round_digits(trace.overhead_seconds)}};
}

Json plan_json(const TrainingOutcome& outcome) {
  return {{"parameter_count", outcome.parameter_count},
          {"flops_per_sample", outcome.flops_per_sample},
          {"buckets_bytes", outcome.bucket_bytes},
          {"memory_bytes",
           {{"activations", outcome.memory.activations},
            {"parameters_gradients_state",
             outcome.memory.parameters + outcome.memory.gradients + outcome.memory.moments},
            {"statistics", outcome.memory.statistics},
            {"scratch", outcome.memory.scratch},
            {"total", outcome.memory.total()}}},
          {"gradients_in_backend_memory", outcome.gradients_in_backend_memory},
          {"overlapped", outcome.overlapped},
          {"global_batch", outcome.global_batch},
          {"learning_rate", outcome.learning_rate}};
}

}  // namespace

Json record_beginning(const RunRequest& request, const std::string& status,
                      const std::string& reason) {
  const RecordTarget& target = request.target;
  return {{"schema", kRecordSchema},
          {"kind", "measured"},
          {"study", target.study},
          {"point", target.point},
          {"repeat", target.repeat},
          {"attempt", 1},
          {"session", target.session},
          {"round", target.round},
          {"status", status},
          {"reason", reason},
          {"parameters", parameters_json(request)},
          {"identity", identity_hash(request.workload, request.parameters)}};
}

Json record_of(const RunRequest& request, const RunFacts& facts, const TrainingOutcome& outcome) {
  Json phases = Json::array();
  for (const RankTimes& rank : outcome.ranks) phases.push_back(phases_json(rank));
  Json record = record_beginning(request, "completed", "");
  record.update({{"layout", layout_json(facts.layout, facts.threads)},
                 {"provenance", provenance_json(request, facts, outcome)},
                 {"timing", timing_json(outcome)},
                 {"throughput",
                  {{"samples_per_second", round_digits(samples_per_second(outcome))},
                   {"warmup_steps_excluded", warmup_of(outcome)},
                   {"samples", outcome.samples},
                   {"steps", outcome.steps}}},
                 {"phases", phases},
                 {"straggler", straggler_json(facts, outcome)},
                 {"input", input_json(facts, outcome)},
                 {"checkpoints", checkpoints_json(outcome)},
                 {"trace", trace_json(outcome)},
                 {"plan", plan_json(outcome)},
                 {"utilization", facts.utilization ? Json(*facts.utilization) : Json(nullptr)},
                 {"gpus", Json::parse(facts.gpus)},
                 {"probe",
                  {{"flops_per_second", round_digits(outcome.probe_flops_per_second)},
                   {"bytes_per_second", round_digits(outcome.probe_bytes_per_second)}}},
                 {"quality", quality_json(request, outcome)},
                 {"flags",
                  {{"resumed", outcome.resumed},
                   {"oversubscribed", facts.oversubscribed},
                   {"throttled", facts.throttled},
                   {"traced", outcome.trace.has_value()},
                   {"synthetic", facts.synthetic}}}});
  return record;
}

std::string compressed_samples(const TrainingOutcome& outcome) {
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
  }
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(lines.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(lines.data());
  stream.avail_in = static_cast<uInt>(lines.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error(ErrorKind::internal, "samples could not be compressed");
  return out;
}

}  // namespace paceline
