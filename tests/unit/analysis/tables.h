// Documents of records, their texts and cells.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/findings/best.h"
#include "analysis/table/table.h"
#include "engine/core/text.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
inline namespace testing {

// A study against its base.
struct Compared {
  Study study;
  Comparison comparison;
  std::vector<RowFacts> facts;

  explicit Compared(Study made, const Base& base = Base::matched)
      : study(std::move(made)), comparison(compare(study, base)) {
    for (std::size_t i = 0; i < study.rows.size(); ++i) {
      facts.push_back(row_facts(study, comparison, i));
    }
  }
  explicit Compared(const std::vector<Json>& records, const Base& base = Base::matched)
      : Compared(make_studies(canonical_content(records)).at(0), base) {}

  Section section() const { return make_section(study, comparison, facts); }
};

inline Section report_section(const std::vector<Json>& records, const Base& base = Base::matched,
                              const std::vector<ExpectedRuns>& wanted = {}) {
  return Compared(make_studies(canonical_content(records), {}, wanted).at(0), base).section();
}

inline Document report_document(std::vector<Section> sections) {
  Document document{.name = "report", .title = "quick", .list = "tables"};
  document.sections = std::move(sections);
  return document;
}

// With all details.
inline std::string full_text(const Document& document, std::size_t width = 300) {
  return to_text(document, {.details = true, .width = width});
}

inline std::string explanation_text(const Explanation& explanation, std::size_t width = 300) {
  return full_text(report_document({explanation_section(explanation)}), width);
}

inline std::string best_text(const Study& study, const Best& best) {
  return full_text(best_document(study, best));
}

inline std::string notes_text(const Section& section) {
  return join(section.notes, "\n");
}

inline std::string findings_text(const Section& section) {
  std::vector<std::string> texts;
  for (const Statement& each : section.findings) texts.push_back(each.text);
  return join(texts, "\n");
}

inline const Cell& cell(const Section& section, std::size_t row, const std::string& key) {
  const Table& table = section.table;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (table.columns[k].key == key) return table.rows.at(row).at(k);
  }
  throw std::runtime_error("no column " + key);
}

inline bool is_shown(const Section& section, const std::string& key) {
  for (const Column& column : section.table.columns) {
    if (column.key == key) return column.shown;
  }
  return false;
}

}  // namespace testing
}  // namespace paceline
