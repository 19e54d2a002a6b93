// From studies to a report: table, findings, legend, files and plots. The single entry point for
// the verbs.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "analysis/render/render.h"
#include "analysis/study/comparison.h"
#include "analysis/study/study.h"

namespace paceline {

struct ReportOptions {
  Base base = Base::matched;
  Format format = Format::text;  // of the printed report
  TextStyle style;
  // Folder for report.md, .csv, .json, .html and plots. Empty: print only.
  std::filesystem::path out;
  // always: all studies in one table, with nested sessions; else they are compared.
  Pooling pooling = Pooling::by_sessions;
  bool anonymous = false;  // removes hosts, users, accounts and paths (study.h)
  std::vector<std::string> plots = {"svg", "png"};
  std::vector<Selection> only;
  std::vector<std::string> columns;  // see choose_columns(); empty: the usual ones
};

struct ReportFiles {
  std::vector<std::filesystem::path> tables;  // report.md, .csv, .json, .html; collectives.md, ...
  // speedup.svg, efficiency.svg, ...; speedup-2.svg for a second table.
  std::vector<std::filesystem::path> plots;
};

// Prints the report to `stream` and writes the files, replacing only those of an older report
// (render.h). With text format, prints the paths of the files last. Throws input or usage
// before printing if the records cannot be reported. Throws usage at the end if plots were
// requested and gnuplot is missing.
ReportFiles write_report(const std::vector<std::filesystem::path>& studies,
                         const ReportOptions& options, std::ostream& stream);

}  // namespace paceline
