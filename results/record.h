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
  // Throws input with `where` and the key, as parse_run_record().
  Record(const Json& json, std::string where);
  // Of a file, whose JSON is read again where somebody asks for it: it takes several times the
  // memory of the facts, and a store may hold 100,000 records.
  Record(RunRecord facts, const std::filesystem::path& file);

  const RunRecord* operator->() const { return facts_.get(); }
  const RunRecord& operator*() const { return *facts_; }
  const std::shared_ptr<const RunRecord>& facts() const { return facts_; }
  // Includes keys that this build does not know. Throws input if the file is gone by now.
  const Json& json() const;
  const std::string& where() const { return where_; }  // its file

 private:
  mutable std::shared_ptr<const Json> json_;  // null: not read yet
  std::string where_;
  std::shared_ptr<const RunRecord> facts_;
};

// What is read of records: all, or only what tells what became of a run, of which program, data and
// machine it was, and how long it took. Other facts are left as if the record gave none: reading
// takes a third of the time.
enum class RecordParts { all, outcome };

// Throws input: unreadable, over 32 KB, cut short, not a record, a newer schema.
Record read_record(const std::filesystem::path& file, RecordParts parts = RecordParts::all);

}  // namespace paceline
