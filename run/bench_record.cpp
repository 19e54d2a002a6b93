#include "run/bench_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "run/record_parts.h"

namespace paceline {

namespace {

void set_bandwidths(CollectiveRow& row, double ranks) {
  row.algbw_bytes_per_second = static_cast<double>(row.bytes) / row.seconds;
  row.busbw_bytes_per_second = *row.algbw_bytes_per_second * 2 * (ranks - 1) / ranks;
}

std::string note(std::int64_t rounds) {
  return fmt::format(
      "in place, each call on a buffer written before it; medians of samples taken in {} "
      "interleaved "
      "rounds, the slowest rank's time each",
      rounds);
}

// Over the rounds that have it.
std::optional<double> median_of_rounds(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

CollectiveRow make_row(const BenchSize& size, const BenchRow& row, const BenchFacts& facts) {
  const std::size_t bytes = row.count * size_of(facts.type);
  CollectiveRow result;
  result.bytes = bytes;
  result.count = row.count;
  result.samples = row.samples;
  result.calls_a_sample = row.calls;
  result.seconds = row.all_reduce.median;
  result.seconds_min = row.all_reduce.least;
  result.seconds_p95 = row.all_reduce.p95;
  set_bandwidths(result, facts.layout.gpus);
  result.wrong = row.wrong;
  result.label = size.label;
  if (row.copy) result.memcpy_seconds = row.copy->median;
  if (row.reused) result.reused_seconds = row.reused->median;
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
  block.dtype = to_string(facts.type);
  block.rounds = facts.rounds;
  block.note = note(static_cast<std::int64_t>(facts.rounds));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    block.rows.push_back(make_row(sizes[i], rows[i], facts));
  }
  return record;
}

RunRecord merge_rounds(const std::vector<RunRecord>& rounds) {
  RunRecord merged = rounds.front();
  CollectiveFacts& block = *merged.collective;
  block.rounds = static_cast<std::int64_t>(rounds.size());
  block.note = note(*block.rounds);
  for (std::size_t i = 0; i < block.rows.size(); ++i) {
    CollectiveRow& row = block.rows[i];
    const auto median = [&](const auto& member) {
      std::vector<double> values;
      for (const RunRecord& round : rounds) {
        const std::optional<double> value = round.collective->rows[i].*member;
        if (value) values.push_back(*value);
      }
      return median_of_rounds(std::move(values));
    };
    row.seconds = *median(&CollectiveRow::seconds);
    row.seconds_p95 = median(&CollectiveRow::seconds_p95);
    row.memcpy_seconds = median(&CollectiveRow::memcpy_seconds);
    row.reused_seconds = median(&CollectiveRow::reused_seconds);
    set_bandwidths(row, merged.layout.gpus);
    for (std::size_t round = 1; round < rounds.size(); ++round) {
      const CollectiveRow& other = rounds[round].collective->rows[i];
      row.samples = row.samples.value_or(0) + other.samples.value_or(0);
      row.seconds_min = std::min(row.seconds_min, other.seconds_min);
      row.wrong = row.wrong.value_or(0) + other.wrong.value_or(0);
      if (row.first_wrong.empty()) row.first_wrong = other.first_wrong;
    }
  }
  return merged;
}

}  // namespace paceline
