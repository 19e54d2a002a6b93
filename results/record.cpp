#include "results/record.h"

#include <nlohmann/json.hpp>

namespace paceline {

Record::Record(Json json, std::string where)
    : json_(std::make_unique<Json>(std::move(json))),
      where_(std::move(where)),
      facts_(run_record_of(*json_, where_)) {}

Record::~Record() = default;
Record::Record(const Record& other)
    : json_(std::make_unique<Json>(*other.json_)), where_(other.where_), facts_(other.facts_) {}
Record::Record(Record&&) noexcept = default;
Record& Record::operator=(Record&&) noexcept = default;

Record read_record(const std::filesystem::path& file) {
  const std::string text = read_text(file, kRecordLimitBytes);
  JsonDocument document(file.string(), text);
  return Record(document.value(), file.string());
}

}  // namespace paceline
