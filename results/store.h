// A study's folder of records: STUDY/<point>/<repeat>.<attempt>.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/record.h"

namespace paceline {

struct Rejected {
  std::filesystem::path file;
  std::string reason;  // one line
};

struct StoreContent {
  std::vector<Record> records;     // by point folder, repeat, attempt
  std::vector<Rejected> rejected;  // cut short, newer schema, ...: reported, ignored, never fatal
};

// Every record below `folder` (a study, a folder of studies, or one record's file), where links to
// folders are followed. Only files named like records are read. Throws input if it is not there.
// A folder with a table.json is a published table (published.h) and gives its rows.
StoreContent load_store(const std::filesystem::path& folder, RecordParts parts = RecordParts::all);
// Several at once: a file reached twice is read once, a run copied to another place is rejected.
StoreContent load_stores(const std::vector<std::filesystem::path>& folders,
                         RecordParts parts = RecordParts::all);

class Store {
 public:
  explicit Store(std::filesystem::path study_folder);  // created on the first write

  // Writes samples (already compressed), then the record with their file name, size and hash
  // filled in, under the first free attempt of (point folder, repeat). `json` needs no "attempt"
  // or "samples". Returns the record's path. Throws input if the folder cannot be written; nothing
  // half-written is ever seen under a record's name.
  std::filesystem::path write(const std::string& point_folder, int repeat, Json json,
                              std::string_view compressed_samples) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// The sidecar of a record of that name: "run.steps.gz" of "run.json".
std::filesystem::path samples_file(std::filesystem::path record);

// For `paceline train --record FILE`: the same, at a name of the user's choice. Throws input if
// FILE exists already.
void write_record_file(const std::filesystem::path& file, Json json,
                       std::string_view compressed_samples);

}  // namespace paceline
