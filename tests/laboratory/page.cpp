#include "tests/laboratory/page.h"

#include <algorithm>
#include <regex>

#include "analysis/findings/best.h"
#include "analysis/render/render.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::laboratory {

namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void add_table(Page& page, const Explanation& explanation) {
  const auto& [study, comparison, facts] =
      std::tie(explanation.study, explanation.comparison, explanation.facts);
  const std::vector<Finding> found = findings(study, comparison, facts);
  page.findings.insert(page.findings.end(), found.begin(), found.end());
  const Table table = make_table(study, comparison, facts);
  append(page.warnings, table.warnings);
  append(page.notes, table.notes);
  append(page.sentences, table.findings);
  TextStyle style;
  style.width = 1000;
  page.tables += render({table}, Format::text, style);
}

void add_explanation(Page& page, const Explanation& explanation) {
  for (const SeriesExplanation& series : explanation.series) {
    page.findings.insert(page.findings.end(), series.verdict.begin(), series.verdict.end());
  }
  for (const std::vector<Finding>* each : {&explanation.unlike, &explanation.causes}) {
    page.findings.insert(page.findings.end(), each->begin(), each->end());
  }
  const ExplanationView view = make_view(explanation);
  append(page.warnings, view.warnings);
  append(page.notes, view.notes);
  for (const auto* sentences : {&view.first, &view.points, &view.series}) {
    append(page.sentences, *sentences);
  }
}

void add_best(Page& page, const Study& study) {
  try {
    page.best.push_back(best_answer(study, find_best(study, 0.05)));
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
