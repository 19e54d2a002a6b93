// The history that github-action-benchmark keeps in data.js: window.BENCHMARK_DATA = {"entries":
// {SUITE: [{"commit": .., "date": milliseconds, "tool": .., "benches": [{"name", "value", "unit"}]}
// ]}}. Each commit's results are a session.
#include <fmt/format.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::string_view kHistoryMark = "BENCHMARK_DATA";

// "ns/iter", "ms": of a second. Empty: no time.
std::optional<double> seconds_in(const std::string& unit) {
  static const std::map<std::string, double> units = {
      {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"sec", 1}, {"seconds", 1}};
  const auto found = units.find(std::string(trim(unit.substr(0, unit.find('/')))));
  return found == units.end() ? std::nullopt : std::optional(found->second);
}

bool is_rate(const std::string& unit) {
  const std::string of = unit.substr(std::min(unit.find('/'), unit.size()));
  return of == "/s" || of == "/sec" || of == "/second";
}

ImportContent read_history(const ForeignFile& file) {
  const std::size_t begin = file.text.find('{', file.text.find(kHistoryMark));
  const ObjectText object =
      begin == file.text.npos ? ObjectText() : object_at_begin(file.text.substr(begin));
  const Json json = parse_json(object.text);
  const Json& entries = find_member(json, "entries");
  if (!entries.is_object()) {
    refuse_line(file, 1, "the history is cut off, or has no entries", "copy data.js again");
  }
  ImportContent content{"github-action-benchmark", {}, {}};
  std::map<std::string, std::size_t> left_out;  // by unit
  for (const auto& [suite, results] : entries.items()) {
    for (const Json& result : results) {
      const Json& commit = find_member(result, "commit");
      const auto date =
          static_cast<std::time_t>(number_or_empty(find_member(result, "date")).value_or(0) / 1e3);
      std::tm utc{};
      char started[32] = "";
      if (date > 0 && gmtime_r(&date, &utc)) strftime(started, sizeof started, "%FT%TZ", &utc);
      for (const Json& bench : find_member(result, "benches")) {
        const std::string name = text_or_empty(find_member(bench, "name")),
                          unit = text_or_empty(find_member(bench, "unit"));
        const auto value = number_or_empty(find_member(bench, "value"));
        const auto seconds = seconds_in(unit);
        if (name.empty() || !value || !(*value > 0) || (!seconds && !is_rate(unit))) {
          ++left_out[unit];
          continue;
        }
        RunRecord& record = content.runs.emplace_back().record;
        record.workload = suite + ": " + name;
        set_replicas(record, 1);
        record.session = fmt::format("{} {}", started, text_or_empty(find_member(commit, "id")));
        record.provenance.started_at = started;
        record.provenance.commit = text_or_empty(find_member(commit, "id"));
        if (is_rate(unit)) {
          record.throughput->samples_per_second = *value;
          record.throughput->unit = unit;
          record.throughput->better = "more";
          record.provenance.rate_is = unit;
        } else {
          record.timing->fit_seconds = *value * *seconds;
          record.provenance.time_is = unit;
        }
      }
    }
  }
  for (const auto& [unit, count] : left_out) {
    content.notes.push_back(fmt::format("{} left out: \"{}\" is neither a time nor a rate",
                                        counted(static_cast<double>(count), "value"), unit));
  }
  if (content.runs.empty()) {
    refuse_line(file, 1, "the history has no result that is a time or a rate", "import another");
  }
  return content;
}

}  // namespace

ImportFormat github_action_format() {
  return {.name = "github-action",
          .what = "data.js of github-action-benchmark",
          .example = "data.js --study ours && paceline history results/local/ours",
          .is_one = [](std::string_view text) { return text.find(kHistoryMark) != text.npos; },
          .read = read_history};
}

}  // namespace paceline
