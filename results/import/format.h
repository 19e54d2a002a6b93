// What a format of another tool's output gives, and the list of formats.
//
// A format is a file in this folder and an entry of formats.cpp. It turns the text of a file into
// run records that hold what the file says and nothing else. import.h adds what all have: kind,
// provenance, --set, names in the store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/run_record.h"

namespace paceline {

struct ForeignFile {
  std::string name;  // as the user gave it; for messages
  std::string text;
  std::vector<std::string> columns, set;  // --column KEY=HEADING, --set KEY=VALUE; for csv
};

struct ImportedRun {
  RunRecord record;
  std::size_t line = 1;  // of the file, where it begins
};

struct ImportContent {
  std::string tool;  // "nccl-tests 2.16.0"
  std::vector<ImportedRun> runs;
  std::vector<std::string> notes;  // what was left out, one sentence each
};

struct ImportFormat {
  const char* name;
  const char* what;  // "output of NVIDIA's nccl-tests"
  bool (*is_one)(std::string_view text);
  // Throws input naming file and line. Never returns an empty list of runs.
  ImportContent (*read)(const ForeignFile& file);
};

const std::vector<ImportFormat>& import_formats();

// Throws usage with the nearest name.
const ImportFormat& import_format_named(const std::string& name);

// Throws input if the text is not of `format`, naming the format that it looks like.
void check_format(const ImportFormat& format, const ForeignFile& file);

}  // namespace paceline
