// Tables of records, and their cells.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "tests/unit/analysis/samples.h"

namespace paceline::testing {

inline Table format_table(const std::vector<Json>& records, Base base = Base::matched,
                          const std::vector<ExpectedRuns>& wanted = {}) {
  const Study study = make_studies(canonical_content(records), {}, wanted).at(0);
  const Comparison comparison = compare(study, base);
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  return make_table(study, comparison, facts);
}

inline const Cell& cell(const Table& table, std::size_t row, const std::string& key) {
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (table.columns[k].key == key) return table.rows.at(row).at(k);
  }
  throw std::runtime_error("no column " + key);
}

}  // namespace paceline::testing
