// Where the efficiency of a study went: a label a point with the numbers that say so, and the law
// that the points follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/counterfactual.h"
#include "analysis/explain/efficiency.h"
#include "analysis/explain/fits.h"
#include "analysis/findings/findings.h"
#include "analysis/study/study.h"

namespace paceline {

// Lost points of efficiency below this are not worth a label.
constexpr double kWorthALabel = 0.03;

// A part of the efficiency that a point lost against its base, as a share: of its cost a sample
// that its base does not have. Below zero: gained.
struct Loss {
  std::string label;  // input, communication, straggler, launch, compute, outside of steps
  double value = 0;
  std::optional<Interval> interval;  // none of fewer than three runs, or of disturbed ones
};

struct PointExplanation {
  const RowFacts* facts = nullptr;
  std::string name;  // see point_names()
  // What cost the most, beyond the noise of the runs; several joined by "or" where they cannot be
  // told apart. Empty: nothing can be told from noise, or there are no phases to tell by.
  std::string label;
  std::string by_means;  // what it would be if the means had no noise; of too few runs to judge
  std::string because;   // the numbers that say so
  std::optional<StepEfficiency> step;
  // Against the base of the speed-up; none where there is none, or no phases.
  std::optional<double> computation_scaling, product, residual;  // residual: measured / product - 1
  std::optional<double>
      samples_to_goal;       // of the base over this point's, where runs end with a goal
  std::optional<Loss> lost;  // in all, where there is a base
  std::vector<Loss> losses;  // its parts
  std::vector<Counterfactual> counterfactuals;
};

struct SeriesExplanation {
  std::string name;
  std::optional<Fitted> amdahl, gustafson;  // gustafson for weak scaling, amdahl for the others
  std::optional<UslFit> usl;
  std::size_t sizes = 0;  // of several replicas
  std::vector<Finding> verdict;
};

// Holds what points and series point into, so it is moved and not copied.
struct Explanation {
  Explanation() = default;
  Explanation(Explanation&&) = default;
  Explanation& operator=(Explanation&&) = default;

  std::string title, base;
  Study study;
  Comparison comparison;
  std::vector<RowFacts> facts;
  std::vector<PointExplanation> points;
  std::vector<SeriesExplanation> series;
  std::vector<Finding> unlike;  // runs that differ widely
  std::vector<Finding> causes;  // of steady fractions
  std::vector<std::string> notes;
};

// One a table that `report` would make. Throws as make_studies().
std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 const std::vector<Selection>& selections = {},
                                 const std::vector<ExpectedRuns>& plans = {}, bool pool = false);

// The same of studies that were made of `content`.
std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 std::vector<Study> studies);

// What there is to read, without the title.
struct ExplanationView {
  std::vector<std::string> warnings;               // what flaws the runs
  std::vector<std::string> first;                  // what must be known before the points are read
  std::vector<std::vector<std::string>> table;     // headings, then a row a point
  std::vector<std::string> points, series, notes;  // sentences
};
ExplanationView view_of(const Explanation& explanation);

// In lines of at most `width` columns, but for single words.
std::string explanation_text(const Explanation& explanation, std::size_t width = 300);
// {"schema": 2, "explanations": [{"title", "base", "points": [..], "series": [..], "warnings":
// [..], "unlike_runs", "causes", "notes"}]}
std::string explanations_json(const std::vector<Explanation>& explanations);

}  // namespace paceline
