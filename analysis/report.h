// From studies to what a user reads: table, findings, legend, files and plots. The one entry for
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
  Format format = Format::text;  // of what is printed
  TextStyle style;
  // Folder for report.md, .csv, .json, .html and plots; empty: only print.
  std::filesystem::path out;
  bool pool = false;       // one table of all, its sessions nested; else studies are compared
  bool anonymous = false;  // without hosts, users, accounts and paths (anonymous.h)
  std::vector<std::string> plots = {"svg", "png"};
  std::vector<Selection> only;
};

struct ReportFiles {
  std::vector<std::filesystem::path> tables;  // report.md, .csv, .json, .html; collectives.md, ...
  // speedup.svg, efficiency.svg, ...; speedup-2.svg of a second table.
  std::vector<std::filesystem::path> plots;
};

// Prints the report to `stream` and writes the files (over those of an older report, and nothing
// else: report_files.h). In text, the paths written are printed last. Throws input or usage before
// anything is printed where the records cannot be reported, and usage after all else where plots
// were wanted and gnuplot is missing.
ReportFiles write_report(const std::vector<std::filesystem::path>& studies,
                         const ReportOptions& options, std::ostream& stream);

}  // namespace paceline
