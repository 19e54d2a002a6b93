// A study's folder of records: STUDY/<point>/<repeat>.<attempt>.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "results/parameters.h"

namespace paceline {

struct RunRecord;

// A record as it was read: the typed facts, the JSON, and the file.

constexpr std::size_t kRecordLimitBytes = 32 << 10;

class Record {
 public:
  // Throws input with `where` and the key, as parse_run_record().
  Record(const Json& json, std::string where);
  // A record in a file, whose JSON is read again when it is asked for: it takes several times the
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

// Throws input: unreadable, over 32 KB, cut short, not a record, another schema.
Record read_record(const std::filesystem::path& file, RecordParts parts = RecordParts::all);

struct Rejected {
  std::filesystem::path file;  // or a folder that cannot be read
  std::string reason;          // one line
};

struct StoreContent {
  std::vector<Record> records;     // sorted by point folder, repeat, attempt
  std::vector<Rejected> rejected;  // unreadable, another schema, ...: reported and ignored
};

// Reads every record in `folder` (a study, a folder of studies, or a single record file). Follows
// links to folders, and reads only files named like records. A folder with a table.json is a
// published table (shipped.h). Throws input if `folder` does not exist.
StoreContent load_store(const std::filesystem::path& folder, RecordParts parts = RecordParts::all);
// Several folders at once: reads a file only once, and rejects a copy of a run.
StoreContent load_stores(const std::vector<std::filesystem::path>& folders,
                         RecordParts parts = RecordParts::all);

// A run's place in its study.
struct RunPlace {
  std::string study = "train", point, point_folder, session;
  int repeat = 1, round = 1;
  bool sequential = false;  // RunFlags::sequential
};

// A run that ended without a record. Who watched it knows the reason.
struct UnfinishedRun : RunPlace {
  std::string workload;
  Point parameters;  // may lack defaults
  std::string status = "failed", reason;
};

class Store {
 public:
  explicit Store(std::filesystem::path study_folder);  // created on the first write
  explicit Store(const Folder& study) : folder_(study.path()), study_(&study) {}

  // Writes samples (already compressed), then the record with their file name, size and hash, as
  // the first free attempt of (point folder, repeat). `json` needs no "attempt" or "samples".
  // Returns the record's path. Throws input if the folder cannot be written. Incomplete records are
  // never visible.
  std::filesystem::path write(const std::string& point_folder, int repeat, Json json,
                              std::string_view compressed_samples) const;

  // The record of a run that left none, as the next attempt of its repeat.
  std::filesystem::path write(const UnfinishedRun& run) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  const Folder* study_ = nullptr;
};

// The sidecar of a record: "run.steps.gz" for "run.json".
std::filesystem::path samples_file(std::filesystem::path record);

// For `paceline train --record FILE`: the same with a name chosen by the user. Throws input if FILE
// exists.
void write_record_file(const std::filesystem::path& file, Json json,
                       std::string_view compressed_samples);

}  // namespace paceline
