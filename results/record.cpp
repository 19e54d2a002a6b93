#include "results/record.h"

#include <nlohmann/json.hpp>

namespace paceline {

Record::Record(const Json& json, std::string where)
    : json_(std::make_shared<Json>(json)),
      where_(std::move(where)),
      facts_(std::make_shared<RunRecord>(run_record_of(json, where_))) {}

Record read_record(const std::filesystem::path& file) {
  const std::string text = read_text(file, kRecordLimitBytes);
  JsonDocument document(file.string(), text);
  return Record(document.value(), file.string());
}

}  // namespace paceline
