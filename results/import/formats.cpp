#include "results/import/formats.h"

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

// In the order in which a file is tried: a table of anything comes last.
const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> all = {
      {"nccl-tests", "output of nccl-tests or rccl-tests", is_nccl_tests, read_nccl_tests},
      {"osu", "output of the OSU Micro-Benchmarks", is_osu, read_osu},
      {"jobstats", "a report of jobstats", is_jobstats, read_jobstats},
      {"horovod-timeline", "a Horovod timeline", is_horovod_timeline, read_horovod_timeline},
      {"google-benchmark", "JSON of Google Benchmark", is_google_benchmark,
       read_google_benchmark_file},
      {"mlperf", "a log of MLPerf Training", is_mlperf, read_mlperf},
      {"csv", "a table of comma-separated values", is_csv_table, read_csv_table}};
  return all;
}

const ImportFormat& import_format_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ImportFormat& format : import_formats()) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  throw Error(ErrorKind::usage, "unknown format \"" + name + "\"", "import",
              suggestion(name, names));
}

void check_format(const ImportFormat& format, const ForeignFile& file) {
  if (file.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(ErrorKind::input, "the file is empty", file.name, "name another file");
  }
  // Any line with a comma may be of a table.
  const bool is_sure = &format != &import_formats().back() && format.is_one(file.text);
  for (const ImportFormat& other : import_formats()) {
    if (!other.is_one(file.text)) continue;
    if (is_sure || &other == &format) return;
    throw Error(ErrorKind::input,
                std::string("the file is not ") + format.what + ", but looks like " + other.what,
                file.name, std::string("try: paceline import ") + other.name);
  }
  const std::string_view head = std::string_view(file.text).substr(0, file.text.find('\n'));
  const bool has_other_separator =
      format.read == read_csv_table && head.find_first_of(";\t") != head.npos;
  throw Error(ErrorKind::input, std::string("the file is not ") + format.what, file.name,
              has_other_separator ? "its columns are separated by semicolons or tabs: write commas"
                                  : "see docs/import.md for what each format looks like");
}

}  // namespace paceline
