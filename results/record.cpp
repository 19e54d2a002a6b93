#include "results/record.h"

#include <nlohmann/json.hpp>

#include "engine/core/json_skim.h"

namespace paceline {

namespace {

const std::vector<Wanted> kOutcome = {
    {"schema"},
    {"kind"},
    {"study"},
    {"point"},
    {"repeat"},
    {"attempt"},
    {"session"},
    {"round"},
    {"status"},
    {"reason"},
    {"parameters", {{"workload"}, {"backend"}, {kControl}}},
    {"identity"},
    {"layout"},
    {"provenance",
     {{"version"},
      {"commit"},
      {"dirty"},
      {"allocation"},
      {"cpu_model"},
      {"machine"},
      {"data_hash"},
      {"backend_used"},
      {"program"}}},
    {"timing", {{"fit_seconds"}, {"setup_seconds"}, {"evaluation_seconds"}}},
    {"throughput", {{"samples_per_second"}}},
    {"gpus"},
    {"collective"}};

}  // namespace

Record::Record(const Json& json, std::string where)
    : json_(std::make_shared<Json>(json)),
      where_(std::move(where)),
      facts_(std::make_shared<RunRecord>(parse_run_record(json, where_))) {}

Record::Record(RunRecord facts, const std::filesystem::path& file)
    : where_(file.string()), facts_(std::make_shared<RunRecord>(std::move(facts))) {}

const Json& Record::json() const {
  if (!json_) {
    const std::string text = read_text(where_, kRecordLimitBytes);
    json_ = std::make_shared<Json>(JsonDocument(where_, text).value());
  }
  return *json_;
}

Record read_record(const std::filesystem::path& file, RecordParts parts) {
  const std::string text = read_text(file, kRecordLimitBytes), where = file.string();
  if (parts == RecordParts::outcome) {
    const std::string outcome = extract_fields(text, kOutcome);
    // Without positions, which cost as much as the rest: where it is no JSON the whole text says
    // so.
    const Json json = Json::parse(outcome, nullptr, false);
    if (!json.is_discarded()) return Record(parse_run_record(json, where), file);
  }
  return Record(parse_run_record(JsonDocument(where, text).value(), where), file);
}

}  // namespace paceline
