// Other tools' files as records of kind imported.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace paceline {

struct ForeignFile;
struct ImportContent;
struct ImportFormat;

struct ImportRequest {
  std::string format;  // "nccl-tests", see formats.h
  std::vector<std::string> files;
  std::string study;                      // a folder's name
  std::filesystem::path results;          // the folder of studies
  std::vector<std::string> set, columns;  // "gpus=8"; "fit_seconds=minutes*60", of csv
  std::string imported_by;                // this program's version
  bool strict = false;                    // warnings are errors
};

struct ImportedRecord {
  std::filesystem::path file;  // in the store
  std::size_t line = 1;        // of the foreign file
  bool is_new = true;          // else it was imported before
};

struct ImportedFile {
  std::string name, tool;
  std::vector<ImportedRecord> records;
  std::vector<std::string> notes;  // what was left out

  static bool is_warning(const std::string& note);
  // "links.txt: 8 records imported from nccl-tests", and its notes except warnings.
  std::string text(bool dry_run) const;
  Json json() const;
};

// Reads and checks all files, and only then writes. Every record carries what it came from: tool,
// file, hash and line (ImportFacts).
class Import {
 public:
  // Throws usage: a format, study or key that is none. Throws input naming file and line: a file of
  // another format, damaged, or that lacks what a record must have; with `strict` a warning.
  explicit Import(const ImportRequest& request);
  ~Import();

  // STUDY in the folder of studies.
  const std::filesystem::path& study() const { return study_; }

  // Skips what was imported before: the same bytes with the same options. With other options the
  // records supersede those of before. `dry_run` writes nothing.
  std::vector<ImportedFile> write(bool dry_run) const;

 private:
  struct Source;  // a file and its records
  static Source read(const std::string& name, const ImportRequest& request,
                     const ImportFormat& format);
  static Source read_together(const ImportRequest& request, const ImportFormat& format);
  static Source make_source(const ForeignFile& file, const std::string& hash, ImportContent content,
                            const ImportRequest& request, const ImportFormat& format);

  std::filesystem::path study_;
  std::vector<Source> sources_;
};

}  // namespace paceline
