// A record as it was read: the typed facts, the JSON, and the file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "results/run_record.h"

namespace paceline {

constexpr std::size_t kRecordLimitBytes = 32 << 10;

class Record {
 public:
  // Throws input with `where` and the key, as run_record_of().
  Record(const Json& json, std::string where);

  const RunRecord* operator->() const { return facts_.get(); }
  const RunRecord& operator*() const { return *facts_; }
  const std::shared_ptr<const RunRecord>& facts() const { return facts_; }
  const Json& json() const { return *json_; }  // includes keys that this build does not know
  const std::string& where() const { return where_; }  // its file

 private:
  std::shared_ptr<const Json> json_;
  std::string where_;
  std::shared_ptr<const RunRecord> facts_;
};

// Throws input: unreadable, over 32 KB, cut short, not a record, a newer schema.
Record read_record(const std::filesystem::path& file);

}  // namespace paceline
