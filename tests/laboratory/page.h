// All that report, its sheet, explain and best say of records.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "results/store.h"

namespace paceline::laboratory {

struct Page {
  std::vector<Explanation> explanations;  // one for each table
  std::vector<Finding> findings;          // of report and of explain
  std::vector<std::string> warnings;      // of the tables and of explain
  std::vector<std::string> notes;         // legends
  std::vector<std::string> sentences;     // of explain and best
  std::string tables;                     // as text
  std::vector<std::string> best;          // the answer for each table that has one
  std::vector<std::string> rows;   // "verdict: 8 replicas: faster", "against: ..", "twice: NAME"
  std::vector<std::string> sheet;  // lines of the sheets
  std::string refusal;             // why there are no tables

  bool has(const std::string& kind) const;  // of a finding: "no_loss"
  // One thing said, or all of them in lines: "kind: text".
  std::string text() const;
  // Whether any line matches the regular expression.
  bool says(const std::string& pattern) const;
};

// What the legend states where rounds that resemble each other make claims too frequent.
constexpr char kRoundsIndependent[] = "takes? rounds as independent";

// As report makes it: of settings of one size against the first.
Section make_report_section(const Study& study);
// The cells of a column, each with its point; without gaps.
using Cells = std::vector<std::pair<std::string, Cell>>;
Cells column_cells(const Section& section, const std::string& key);

Page read_page(const StoreContent& content);

}  // namespace paceline::laboratory
