#include "run/bench_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "run/record_parts.h"

namespace paceline {

namespace {

Json row_json(const BenchSize& size, const BenchRow& row, const BenchFacts& facts) {
  const auto bytes = static_cast<double>(row.count * size_of(facts.type));
  const double ranks = facts.layout.gpus;
  const double algbw = bytes / row.all_reduce.median;
  Json json = {{"bytes", row.count * size_of(facts.type)},
               {"count", row.count},
               {"samples", row.samples},
               {"calls_a_sample", row.calls},
               {"seconds", round_digits(row.all_reduce.median)},
               {"seconds_min", round_digits(row.all_reduce.least)},
               {"seconds_p95", round_digits(row.all_reduce.p95)},
               {"algbw_bytes_per_second", round_digits(algbw)},
               {"busbw_bytes_per_second", round_digits(algbw * 2 * (ranks - 1) / ranks)},
               {"wrong", row.wrong}};
  if (!size.label.empty()) json["label"] = size.label;
  if (row.copy) json["memcpy_seconds"] = round_digits(row.copy->median);
  if (row.library) json["library_seconds"] = round_digits(row.library->median);
  if (!row.first_wrong.empty()) json["first_wrong"] = row.first_wrong;
  return json;
}

}  // namespace

Json bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                  const std::vector<BenchRow>& rows) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) list.push_back(row_json(sizes[i], rows[i], facts));
  Json provenance = build_json(facts.command);
  provenance["hosts"] = facts.hosts;
  provenance["cpu_model"] = facts.cpu_model;
  provenance["affinity"] = facts.affinity;
  provenance["backend_asked"] = facts.parameters.text("backend").value_or("");
  provenance["backend_used"] = facts.backend_used;
  provenance["started_at"] = facts.started_at;
  return {{"schema", 1},
          {"kind", "collective"},
          {"study", "bench"},
          {"point", ""},
          {"repeat", 1},
          {"attempt", 1},
          {"status", "completed"},
          {"reason", ""},
          {"parameters", values_json(facts.parameters)},
          {"layout", layout_json(facts.layout, {})},
          {"provenance", provenance},
          {"collective",
           {{"operation", "all_reduce"},
            {"dtype", name_of(facts.type)},
            {"library", facts.library},
            {"rounds", facts.rounds},
            {"note", fmt::format("in place; medians of samples taken in {} interleaved rounds, the "
                                 "slowest rank's time each",
                                 facts.rounds)},
            {"rows", list}}},
          {"flags",
           {{"resumed", false}, {"oversubscribed", facts.oversubscribed}, {"synthetic", true}}}};
}

}  // namespace paceline
