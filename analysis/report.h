// From studies to a report: table, findings, legend, files and plots. The single entry point for
// the verbs.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/study/comparison.h"
#include "analysis/study/study.h"

namespace paceline {

struct ReportOptions : OutputOptions {
  Base base = Base::matched;
  // always: all studies in one table, with nested sessions; else they are compared.
  Pooling pooling = Pooling::by_sessions;
  bool anonymous = false;  // removes hosts, users, accounts and paths (study/study.h)
  std::vector<Selection> only;
  std::vector<std::string> columns;  // see choose_columns(); empty: the usual ones
};

// The documents "report" and "collectives", as far as there are such records. Throws input or usage
// if they cannot be reported.
std::vector<Document> make_report(const std::vector<std::filesystem::path>& studies,
                                  const ReportOptions& options);

// make_report() and write_documents().
WrittenFiles write_report(const std::vector<std::filesystem::path>& studies,
                          const ReportOptions& options, std::ostream& stream);

}  // namespace paceline
