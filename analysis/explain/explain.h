// Explains where the efficiency of a study went: a label for each point, with the numbers behind
// it, and the scaling law that fits the points.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/explain/efficiency.h"
#include "analysis/explain/fits.h"
#include "analysis/findings/findings.h"
#include "analysis/plots/plot.h"
#include "analysis/study/study.h"

namespace paceline {

// Smaller losses of efficiency get no label.
constexpr double kWorthALabel = 0.03;

struct PointExplanation {
  const RowFacts* facts = nullptr;
  std::string name;  // see point_names()
  // The largest cost beyond the noise of the runs, whether or not others give back what it takes.
  // Costs that cannot be distinguished are joined by "or". Empty: all costs are within the noise,
  // or there are no phases.
  std::string label;
  std::string by_means;  // the label that the means alone would give, for points with too few runs
  std::string because;   // the numbers behind the label
  std::optional<StepEfficiency> step;
  // Against the base of the speed-up. Empty without a base or without phases.
  std::optional<double> computation_scaling, product, residual;  // residual: measured / product - 1
  std::optional<double> samples_to_goal;  // base over point, for runs with a goal
  std::optional<Judged> lost;             // in total, if there is a base
  std::vector<Loss> losses;               // its parts
  std::vector<Counterfactual> counterfactuals;
};

struct SeriesExplanation {
  std::string name;
  std::optional<Fitted> amdahl, gustafson;  // gustafson for weak scaling, amdahl otherwise
  std::optional<UslFit> usl;
  WeakEvidence unfitted;  // why no law is fitted
  std::size_t sizes = 0;  // with several replicas
  std::vector<Finding> verdict;
};

// Move-only: points and series point into it.
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
  std::vector<Finding> unlike;         // runs that differ widely, networks that are worse
  std::vector<Finding> causes;         // of steady fractions
  std::vector<std::string> lacks_cpu;  // see cpu_for_communication()
  std::vector<std::string> notes;
};

// One for each table that `report` would make. Throws as make_studies().
std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 const std::vector<Selection>& selections = {},
                                 const std::vector<ExpectedRuns>& plans = {},
                                 Pooling pooling = Pooling::by_sessions);

std::vector<Explanation> explain(std::vector<Study> studies, const Base& base);

// A row for each point, findings about them, and a plot of their losses. Plain text goes point by
// point only where details are asked for.
Section explanation_section(const Explanation& explanation);

// {"schema": 2, "explanations": [{"title", "warnings", "findings", "notes", "base", "points": [..],
// "series": [..], "unlike_runs", "causes", "cpu_for_communication"}]}
Document explanation_document(const std::vector<Explanation>& explanations);

// Plots each point's loss of efficiency as one stacked bar, for points with a base, in percentage
// points. Parts that are gains are drawn left of 0, so the lengths add up to the number behind the
// bar. A part whose interval contains 0, or that has no interval, is drawn as noise. Empty if no
// point has a part that would be seen.
std::vector<Plot> loss_plots(const Explanation& explanation);

}  // namespace paceline
