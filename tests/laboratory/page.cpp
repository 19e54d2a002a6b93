#include "tests/laboratory/page.h"

#include <algorithm>
#include <regex>

#include "analysis/findings/best.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::laboratory {

namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void add_section(Page& page, const Section& section) {
  append(page.warnings, section.warnings);
  append(page.notes, section.notes);
  for (const Statement& each : section.findings) page.sentences.push_back(each.text);
  for (const Section& part : section.parts) {
    if (part.kind.empty()) add_section(page, part);
  }
}

void add_table(Page& page, const Explanation& explanation) {
  const auto& [study, comparison, facts] =
      std::tie(explanation.study, explanation.comparison, explanation.facts);
  const std::vector<Finding> found = findings(study, comparison, facts);
  page.findings.insert(page.findings.end(), found.begin(), found.end());
  Document document{.name = "report"};
  document.sections.push_back(make_section(study, comparison, facts));
  add_section(page, document.sections.front());
  page.tables += to_text(document, {.width = 1000});
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
  return all + tables;
}

bool Page::says(const std::string& pattern) const {
  const std::regex expression(pattern);
  for (const std::string& line : split(text(), '\n')) {
    if (std::regex_search(line, expression)) return true;
  }
  return false;
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
    add_table(page, explanation);
    add_explanation(page, explanation);
    add_best(page, explanation.study);
  }
  return page;
}

}  // namespace paceline::laboratory
