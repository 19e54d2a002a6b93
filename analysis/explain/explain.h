// Where the efficiency of a study went: a label a point with the numbers that say so, and the law
// that the points follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/counterfactual.h"
#include "analysis/explain/efficiency.h"
#include "analysis/explain/fits.h"
#include "analysis/study.h"

namespace paceline {

// Lost points of efficiency below this are not worth a label.
constexpr double kWorthALabel = 0.03;

struct PointExplanation {
  const RowFacts* facts = nullptr;
  std::string name;  // "gpus=2, mpi, 1 CPU per replica"
  std::string
      label;  // input, communication, straggler, launch, compute; empty: no phases to tell by
  std::string because;  // the numbers that say so
  std::optional<StepEfficiency> step;
  // Against the base of the speed-up; none where there is none, or no phases.
  std::optional<double> computation_scaling, product, residual;  // residual: measured / product - 1
  std::optional<double>
      samples_to_goal;  // of the base over this point's, where runs end with a goal
  Costs lost;  // shares of this point's cost a sample that its base does not have; may be negative
  std::vector<Counterfactual> counterfactuals;
};

struct LadderExplanation {
  std::string name;
  std::optional<Fitted> amdahl, gustafson;  // gustafson for weak scaling, amdahl for the others
  std::optional<UslFit> usl;
  std::vector<std::string> verdict;  // sentences
};

// Holds what points and ladders point into, so it is moved and not copied.
struct Explanation {
  Explanation() = default;
  Explanation(Explanation&&) = default;
  Explanation& operator=(Explanation&&) = default;

  std::string title, base;
  Study study;
  Comparison comparison;
  std::vector<RowFacts> facts;
  std::vector<PointExplanation> points;
  std::vector<LadderExplanation> ladders;
  std::vector<std::string> notes;
};

// One a table that `report` would make. Throws as make_studies().
std::vector<Explanation> explain(const StoreContent& content, Base base,
                                 const std::vector<Selection>& selections = {},
                                 const std::vector<WantedRuns>& plans = {});

std::string explanation_text(const Explanation& explanation);
// {"schema": 1, "explanations": [{"title", "base", "points": [..], "ladders": [..], "notes"}]}
std::string explanations_json(const std::vector<Explanation>& explanations);

}  // namespace paceline
