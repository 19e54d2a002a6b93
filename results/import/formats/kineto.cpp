// Traces of PyTorch's profiler, all ranks of a run: one record.
#include "results/import/kineto.h"

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

// Of --set KEY=VALUE; what it may be is checked later.
std::optional<double> stated_number(const std::vector<std::string>& set, const std::string& key) {
  std::optional<double> number;
  for (const std::string& each : set) {
    if (each.starts_with(key + "=")) number = to_real(each.substr(key.size() + 1));
  }
  return number;
}

std::optional<double> stated_batch(const std::vector<std::string>& set, int replicas) {
  if (const auto whole = stated_number(set, "global_batch")) return whole;
  const auto batch = stated_number(set, "batch_per_replica");
  if (!batch) return std::nullopt;
  return *batch * replicas * stated_number(set, "gradient_accumulation_steps").value_or(1);
}

ImportContent read_traces(const std::vector<std::string>& files,
                          const std::vector<std::string>& set) {
  const KinetoRun trace = read_kineto_run(files);
  const KinetoTrace& first = trace.ranks.front();
  ImportContent content{"PyTorch's profiler", {}, trace.notes};
  ImportedRun& run = content.runs.emplace_back();
  RunRecord& record = run.record;
  record.workload = "pytorch";
  set_replicas(record, trace.world_size);
  record.layout.replicas_are = first.on_gpu ? "gpus" : "cores";
  record.provenance.stack = "PyTorch";
  record.provenance.hardware = first.gpu;
  record.provenance.backend_requested = first.backend;
  set_trace_facts(record, trace);
  const auto steps = static_cast<double>(trace.steps());
  const auto batch = stated_batch(set, trace.world_size);
  record.timing->fit_seconds = trace.seconds();
  record.provenance.time_is = counted(steps, "traced step");
  record.plan.global_batch = batch;
  record.throughput->steps = steps;
  record.throughput->samples = steps * batch.value_or(1);
  record.throughput->samples_per_second = *record.throughput->samples / trace.seconds();
  if (!batch) {
    record.throughput->unit = "steps";
    content.notes.emplace_back("rates are in steps; --set batch_per_replica=N makes them samples");
  }
  run.samples = compressed_steps(trace);
  return content;
}

}  // namespace

ImportFormat kineto_format() {
  return {.name = "kineto",
          .what = "a trace of PyTorch's profiler",
          .example = "rank*.json.gz --study trace --set batch_per_replica=64",
          .is_one =
              [](std::string_view text) {
                const std::size_t begin = text.find_first_not_of(" \t\r\n");
                const auto has = [&](const char* word) { return text.find(word) != text.npos; };
                if (begin == text.npos) return false;
                if (text[begin] == '[') return has("\"ph\"") && has("\"ts\"");  // says which one
                return text[begin] == '{' && (has("\"traceEvents\"") || has("\"distributedInfo\""));
              },
          .read = nullptr,
          .read_together = read_traces};
}

}  // namespace paceline
