#include "run/bench_record.h"

#include <fmt/format.h>

#include "run/record_parts.h"

namespace paceline {

namespace {

CollectiveRow row_of(const BenchSize& size, const BenchRow& row, const BenchFacts& facts) {
  const std::size_t bytes = row.count * size_of(facts.type);
  const double ranks = facts.layout.gpus;
  const double algbw = static_cast<double>(bytes) / row.all_reduce.median;
  CollectiveRow result;
  result.bytes = bytes;
  result.count = row.count;
  result.samples = row.samples;
  result.calls_a_sample = row.calls;
  result.seconds = row.all_reduce.median;
  result.seconds_min = row.all_reduce.least;
  result.seconds_p95 = row.all_reduce.p95;
  result.algbw_bytes_per_second = algbw;
  result.busbw_bytes_per_second = algbw * 2 * (ranks - 1) / ranks;
  result.wrong = row.wrong;
  result.label = size.label;
  if (row.copy) result.memcpy_seconds = row.copy->median;
  if (row.library) result.library_seconds = row.library->median;
  result.first_wrong = row.first_wrong;
  return result;
}

}  // namespace

RunRecord bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                       const std::vector<BenchRow>& rows) {
  RunRecord record;
  record.kind = "collective";
  record.study = "bench";
  record.parameters = facts.parameters;
  record.layout = layout_facts(facts.layout, {});
  record.provenance = build_facts(facts.command);
  record.provenance.hosts = facts.hosts;
  record.provenance.cpu_model = facts.cpu_model;
  record.provenance.affinity = facts.affinity;
  record.provenance.backend_asked = facts.parameters.text("backend").value_or("");
  record.provenance.backend_used = facts.backend_used;
  record.provenance.started_at = facts.started_at;
  record.flags.oversubscribed = facts.oversubscribed;
  record.flags.synthetic = true;
  CollectiveFacts& block = record.collective.emplace();
  block.operation = "all_reduce";
  block.dtype = name_of(facts.type);
  block.library = facts.library;
  block.rounds = facts.rounds;
  block.note = fmt::format(
      "in place; medians of samples taken in {} interleaved rounds, the slowest rank's time each",
      facts.rounds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    block.rows.push_back(row_of(sizes[i], rows[i], facts));
  }
  return record;
}

}  // namespace paceline
