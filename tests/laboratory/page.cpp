#include "tests/laboratory/page.h"

#include <algorithm>
#include <regex>
#include <set>

#include "analysis/findings/best.h"
#include "analysis/table/sheet.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::laboratory {

namespace {

std::vector<RowFacts> list_facts(const Study& study, const Comparison& comparison) {
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  return facts;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void add_section(Page& page, const Section& section) {
  append(page.warnings, section.warnings);
  append(page.notes, all_notes(section));
  for (const Statement& each : section.findings) page.sentences.push_back(each.text);
  for (const Section& part : section.parts) {
    if (part.kind.empty()) add_section(page, part);
  }
}

void add_rows(Page& page, const Section& section) {
  for (const auto& [key, name] :
       {std::pair("verdict", "verdict: "), std::pair("against_reference", "against: ")}) {
    for (const auto& [point, cell] : column_cells(section, key)) {
      page.rows.push_back(name + point + ": " + cell.text);
    }
  }
  std::set<std::string> points;
  for (const auto& [point, cell] : column_cells(section, "point")) {
    if (!points.insert(point).second) page.rows.push_back("twice: " + point);
  }
}

void add_table(Page& page, const Study& study) {
  const Comparison comparison = compare(study, default_base(study));
  const std::vector<RowFacts> facts = list_facts(study, comparison);
  const std::vector<Finding> found = findings(study, comparison, facts);
  page.findings.insert(page.findings.end(), found.begin(), found.end());
  Document document{.name = "report"};
  document.sections.push_back(make_section(study, comparison, facts));
  add_section(page, document.sections.front());
  add_rows(page, document.sections.front());
  page.tables += to_text(document, {.width = 1000});
}

void add_sheet(Page& page, const Study& study) {
  try {
    append(page.sheet,
           split(to_text(sheet_document(study, Base::matched, 0.7), {.width = 1000}), '\n'));
  } catch (const Error&) {
    return;  // no point reached its goal
  }
}

void add_explanation(Page& page, const Explanation& explanation) {
  for (const SeriesExplanation& series : explanation.series) {
    page.findings.insert(page.findings.end(), series.verdict.begin(), series.verdict.end());
  }
  for (const std::vector<Finding>* each : {&explanation.unlike, &explanation.causes}) {
    page.findings.insert(page.findings.end(), each->begin(), each->end());
  }
  add_section(page, explanation_section(explanation));
}

void add_best(Page& page, const Study& study) {
  try {
    const Document document = best_document(study, find_best(study, 0.05));
    std::string& answer = page.best.emplace_back();
    for (const Statement& each : document.sections.front().findings) answer += each.text + '\n';
  } catch (const Error&) {
    return;  // of some studies there is nothing to say
  }
  append(page.sentences, split(page.best.back(), '\n'));
}

}  // namespace

bool Page::has(const std::string& kind) const {
  return std::ranges::any_of(findings,
                             [&](const Finding& each) { return to_string(each.kind) == kind; });
}

std::string Page::text() const {
  std::string all = refusal.empty() ? "" : "refused: " + refusal + '\n';
  for (const Finding& each : findings)
    all += std::string(to_string(each.kind)) + ": " + each.text + '\n';
  for (const std::string& each : warnings) all += "warning: " + each + '\n';
  for (const std::string& each : sentences) all += each + '\n';
  for (const std::string& each : notes) all += "note: " + each + '\n';
  for (const std::string& each : rows) all += each + '\n';
  for (const std::string& each : sheet) all += "sheet: " + each + '\n';
  return all + tables;
}

bool Page::says(const std::string& pattern) const {
  const std::regex expression(pattern);
  for (const std::string& line : split(text(), '\n')) {
    if (std::regex_search(line, expression)) return true;
  }
  return false;
}

Section make_report_section(const Study& study) {
  const Comparison comparison = compare(study, default_base(study));
  return make_section(study, comparison, list_facts(study, comparison));
}

Cells column_cells(const Section& section, const std::string& key) {
  Cells cells;
  const auto& columns = section.table.columns;
  const auto at =
      static_cast<std::size_t>(std::ranges::find(columns, key, &Column::key) - columns.begin());
  for (const std::vector<Cell>& row : section.table.rows) {
    if (at < row.size() && !row[at].text.empty()) cells.emplace_back(row.front().text, row[at]);
  }
  return cells;
}

Page read_page(const StoreContent& content) {
  Page page;
  try {
    page.explanations = explain(content, Base::matched);
  } catch (const Error& error) {
    page.refusal = error.what();
    return page;
  }
  for (const Explanation& explanation : page.explanations) {
    add_table(page, explanation.study);
    add_explanation(page, explanation);
    add_sheet(page, explanation.study);
    add_best(page, explanation.study);
  }
  return page;
}

}  // namespace paceline::laboratory
