#include "analysis/evidence/standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kFar = 4;                 // tolerances
constexpr double kFarInRanges = 3;         // of the other row's runs
constexpr double kWithinConfidence = 0.9;  // both sides of an interval: 95 % of one

// How badly each run of a row trained: less is better. A loss that is not a number is infinite.
struct TrainedRuns {
  bool of_accuracy = true;
  std::vector<double> badness;

  double tolerance() const { return of_accuracy ? kAccuracyTolerance : std::log1p(kLossTolerance); }
  bool is_few() const { return badness.size() < kFewestRuns; }
  double best() const { return std::ranges::min(badness); }
  double worst() const { return std::ranges::max(badness); }

  std::string text(double bad) const {
    return std::isinf(bad) ? "nan"
           : of_accuracy   ? fmt::format("{:.1f}", -100 * bad)
                           : fmt::format("{:.3g}", std::exp(bad));
  }
  std::string unit() const { return of_accuracy ? " %" : ""; }
  std::string mean_text() const {
    const double mean = average(badness);
    if (std::isinf(mean)) return "nan" + unit();
    return of_accuracy ? fmt::format("{:.2f} %", -100 * mean)
                       : fmt::format("{:.4g}", std::exp(mean));
  }
  std::string runs_text() const {
    constexpr std::size_t kMostListed = 6;
    std::vector<double> sorted = badness;
    std::ranges::sort(sorted, std::greater());
    if (sorted.size() > kMostListed) return text(worst()) + " to " + text(best()) + unit();
    return join(mapped(sorted, [&](double bad) { return text(bad); }), ", ") + unit();
  }
};

// Empty: not known. Infinite: its loss is not a number, whatever its accuracy is.
std::optional<double> find_badness(const Run& run, bool of_accuracy) {
  constexpr double kNoLoss = 1e-12;
  const auto& epochs = run->quality.epochs;
  if (!run->flags.synthetic && std::isnan(run.mean_loss().value_or(0))) {
    return std::numeric_limits<double>::infinity();
  }
  if (of_accuracy) {
    const auto& accuracy = run->quality.test_accuracy;
    return accuracy ? std::optional(-*accuracy) : std::nullopt;
  }
  if (run->flags.synthetic || epochs.empty() || !epochs.back().train_loss) return std::nullopt;
  return std::log(std::max(*epochs.back().train_loss, kNoLoss));
}

TrainedRuns trained_runs(const EvidencePoint& point, bool of_accuracy) {
  TrainedRuns quality{of_accuracy, {}};
  for (const Run& run : point.runs) {
    if (!run.goal.empty()) return {of_accuracy, {}};
    if (const auto bad = find_badness(run, of_accuracy)) quality.badness.push_back(*bad);
  }
  // Accuracies are asked of points that have any.
  const auto is_nan = [](double bad) { return std::isinf(bad); };
  if (of_accuracy && std::ranges::all_of(quality.badness, is_nan)) quality.badness.clear();
  return quality;
}

// Accuracies, or the losses where one of them has none.
std::optional<std::pair<TrainedRuns, TrainedRuns>> runs_to_compare(const EvidencePoint& base,
                                                                   const EvidencePoint& row) {
  for (const bool of_accuracy : {true, false}) {
    TrainedRuns before = trained_runs(base, of_accuracy), after = trained_runs(row, of_accuracy);
    if (!before.badness.empty() && !after.badness.empty()) return std::pair(before, after);
  }
  return std::nullopt;
}

std::size_t count_far_runs(const TrainedRuns& base, const TrainedRuns& row) {
  if (std::isinf(base.worst())) return 0;
  // The range of one or two runs says nothing.
  const double far = base.is_few()
                         ? std::numeric_limits<double>::infinity()
                         : base.worst() + std::max(kFar * base.tolerance(),
                                                   kFarInRanges * (base.worst() - base.best()));
  return count_where(row.badness, [&](double bad) { return bad > far || std::isinf(bad); });
}

Standing make_standing(Standing::Answer answer, const TrainedRuns& base, const TrainedRuns& row) {
  const char* what = row.of_accuracy ? "accuracy" : "loss";
  if (answer == Standing::yes) return {};
  if (answer == Standing::no) {
    return {answer, fmt::format("{} {}", row.of_accuracy ? "lower" : "higher", what),
            row.mean_text() + " beside " + base.mean_text()};
  }
  return {answer, fmt::format("{} unclear", what), row.runs_text() + " beside " + base.runs_text()};
}

// `few_limit`: by how many tolerances means of few runs have to differ.
Standing compare_quality(const TrainedRuns& base, const TrainedRuns& row, std::size_t tests,
                         double few_limit) {
  using enum Standing::Answer;
  const std::size_t far = count_far_runs(base, row);
  if (far == row.badness.size()) return make_standing(no, base, row);
  if (far > 0) {
    Standing standing = make_standing(cannot_tell, base, row);
    standing.label = fmt::format("far {} in {} of {}", make_standing(no, base, row).label, far,
                                 counted(row.badness.size(), "run"));
    standing.has_far_runs = true;
    return standing;
  }
  const double tolerance = base.tolerance() + kRounding;
  if (row.worst() <= base.best() + tolerance) return {};
  if (base.is_few() || row.is_few()) {
    if (!row.of_accuracy) return {};
    const double worse = average(row.badness) - average(base.badness);
    if (worse > few_limit * tolerance) return make_standing(no, base, row);
    return make_standing(worse > tolerance ? cannot_tell : yes, base, row);
  }
  if (std::isinf(base.worst())) return make_standing(cannot_tell, base, row);
  const Difference worse = independent_difference(row.badness, base.badness);
  const double confidence = 1 - (1 - kConfidence) / static_cast<double>(tests);
  if (worse.mean > tolerance && lies_above(*worse.interval(confidence), 0)) {
    return make_standing(no, base, row);
  }
  const bool is_within = worse.interval(kWithinConfidence)->high <= tolerance;
  return make_standing(is_within ? yes : cannot_tell, base, row);
}

}  // namespace

bool has_other_work(const EvidencePoint& base, const EvidencePoint& row) {
  const auto program = [](const EvidencePoint& point) {
    return point.first()->parameters.text("program");
  };
  return !base.work.empty() && !row.work.empty() && base.work != row.work &&
         program(base) != program(row);
}

Standing stands_beside(const EvidencePoint& base, const EvidencePoint& row, std::size_t tests) {
  if (has_other_work(base, row)) return {Standing::no, row.work, ""};
  const auto both = runs_to_compare(base, row);
  return both ? compare_quality(both->first, both->second, tests, 1) : Standing{};
}

std::vector<Standing> stand_together(const std::vector<const EvidencePoint*>& points) {
  std::vector<Standing> standings(points.size());
  for (const bool of_accuracy : {true, false}) {
    const TrainedRuns* best = nullptr;
    std::vector<TrainedRuns> all;
    for (const EvidencePoint* point : points) all.push_back(trained_runs(*point, of_accuracy));
    std::size_t known = 0;
    for (const TrainedRuns& each : all) {
      if (each.badness.empty()) continue;
      ++known;
      const auto rank = [](const TrainedRuns& quality) {
        return std::pair(quality.is_few(), average(quality.badness));
      };
      if (!best || rank(each) < rank(*best)) best = &each;
    }
    if (!best) continue;
    const std::size_t pairs = std::max<std::size_t>(1, known * (known - 1) / 2);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (all[i].badness.empty() || &all[i] == best) continue;
      standings[i] = compare_quality(*best, all[i], pairs, kFar);
    }
    break;
  }
  return standings;
}

}  // namespace paceline
