// Rows that did not train as well as those beside which they stand.
#include <fmt/format.h>

#include <set>

#include "analysis/findings/findings.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct NamedRows {
  std::vector<std::string> texts;  // "mpi, 8 replicas (95.00 % beside 97.00 %)"
  std::set<std::string> labels;

  void add(const std::string& name, const Standing& standing) {
    texts.push_back(name + (standing.values.empty() ? "" : " (" + standing.values + ")"));
    labels.insert(standing.label);
  }
  bool is_one() const { return texts.size() == 1; }
  std::string names() const {
    constexpr std::size_t kMostNamed = 3;
    return join_first(kMostNamed, texts);
  }
  // "2 rows have lower accuracy"
  std::string have_labels() const {
    return fmt::format("{} {} {}", counted(texts.size(), "row"), is_one() ? "has" : "have",
                       join({labels.begin(), labels.end()}, " or "));
  }
};

}  // namespace

std::vector<Finding> quality_findings(const Study& study, const std::vector<RowFacts>& facts) {
  const std::vector<std::string> names = point_names(study, mapped(facts, &RowFacts::row));
  NamedRows worse, worse_than_others, unclear;
  bool has_far_runs = false;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    Standing standing = facts[i].speed_up ? facts[i].speed_up->standing : Standing{};
    const bool of_others = standing.answer == Standing::yes && facts[i].is_worse_than_others();
    if (of_others) standing = *facts[i].among_all;
    if (standing.answer == Standing::cannot_tell) {
      unclear.add(names[i], standing);
      has_far_runs = has_far_runs || standing.has_far_runs;
    } else if (standing.answer == Standing::no && !standing.is_of_work()) {
      (of_others ? worse_than_others : worse).add(names[i], standing);
    }
  }
  std::vector<Finding> found;
  if (!worse.texts.empty()) {
    found.push_back(
        {FindingKind::lower_quality,
         fmt::format("{} than {} base: {}; a bracketed speed-up means a worse network",
                     worse.have_labels(), worse.is_one() ? "its" : "their", worse.names())});
  }
  if (!worse_than_others.texts.empty()) {
    found.push_back(
        {FindingKind::lower_quality,
         fmt::format("{} than the row that trained best: {}; compare times of equal networks",
                     worse_than_others.have_labels(), worse_than_others.names())});
  }
  if (!unclear.texts.empty()) {
    found.push_back(
        {FindingKind::quality_unclear,
         fmt::format("cannot tell whether {} trained as well: {}; {}",
                     counted(unclear.texts.size(), "row"), unclear.names(),
                     has_far_runs ? "a bracketed speed-up means that some runs trained far worse"
                                  : "more runs would show it")});
  }
  return found;
}

}  // namespace paceline
