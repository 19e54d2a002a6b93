// Changes that have no date: what a step must beat before it is called a shift.
//
//   ramp:  from one level to another within kShortestRamp sessions or more, or a tenth of the
//          series if that is more. With the drift beside it this is also a slope that changes
//   decay: exponential, from the first session on
//   wave:  a sine of kShortestWave sessions or more
//   modes: sessions are on one of two levels, in turn
// A step may stand beside a drift, and so may each of these: where one of them leaves no more
// squares than the step, sessions do not show that there was a step.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/stretches.h"

namespace paceline {

constexpr std::size_t kShortestRamp = 20, kShortestWave = 20;
// Squares of noise by which a step must explain more than each of them.
constexpr double kRivalMargin = 2;

enum class UndatedKind {
  ramp,
  decay,
  wave,
  modes,
  vague,  // a step whose date may be any of a tenth of the sessions
};

struct UndatedChange {
  UndatedKind kind = UndatedKind::ramp;
  std::size_t begin = 0, end = 0;  // sessions, end included
  double size = 0;                 // from begin to end; wave, modes: between both extremes
  std::size_t period = 0;          // sessions; of a wave
  std::size_t high = 0;            // sessions; of modes, on the higher level
};

struct UndatedCurve {
  UndatedChange change;
  std::vector<double> values;  // of each session
  double cost = 0;             // the squares that are left, and what the parameters cost
};

std::size_t shortest_ramp(std::size_t sessions);
std::vector<double> step_at(std::size_t sessions, std::size_t at);  // 0, and 1 from `at` on
// What a step explains at each session but the first, beside a mean.
std::vector<double> explained_by_steps(const ScaledSeries& series, double resemblance);

// The first and the last session on which a step may have been, with a likelihood of at least a
// twentieth of that of `at`. `variance`: of a session of scale 1.
struct StepDates {
  std::size_t earliest = 0, latest = 0;
};
StepDates plausible_dates(const ScaledSeries& series, std::size_t at, double variance,
                          double resemblance);
bool has_date(const StepDates& dates, std::size_t sessions);  // not any of a tenth of them

// What regressors leave of a series, by weighted least squares, with sessions that resemble their
// neighbours (an autoregressive series).
class Residuals {
 public:
  explicit Residuals(const ScaledSeries& series, double resemblance = 0);

  void add(std::span<const double> regressor);
  double squares() const;
  std::size_t sessions() const { return rest_.size(); }

  // What one or two further regressors would explain, and with which coefficients.
  struct Further {
    double explained = 0, first = 0, second = 0;
    double square = 0;  // of the first, as far as the regressors do not explain it
  };
  Further further(std::span<const double> first, std::span<const double> second = {}) const;

 private:
  std::vector<double> independent(std::span<const double> values) const;
  std::vector<double> unexplained(std::span<const double> regressor) const;

  double resemblance_;
  std::vector<double> roots_, rest_;        // of weights; weighted values
  std::vector<std::vector<double>> basis_;  // orthonormal
};

// Of `steps`, those from number `first` to `last`, and a curve that was taken for undated before.
struct StepsAndCurve {
  std::span<const std::size_t> steps;
  std::size_t first = 0, last = 0;
  std::span<const double> curve{};
};

// The curve that explains `series` as well as these together, beside the other steps. Both may
// stand beside a drift over `days`, if there are any, which costs the logarithm of the number of
// sessions (BIC), in squares of noise. A single step may move. Empty: the steps explain more.
std::optional<UndatedCurve> find_rival(const ScaledSeries& series, std::span<const double> days,
                                       const StepsAndCurve& judged, double variance,
                                       double resemblance = 0);

// Two levels between which sessions go back and forth, where that explains the series better than
// what has the `cost`: minus the logarithm of the likelihood, of a Markov chain of two states.
// `changes` loses those that are not the beginning or the end of a spell which outlasts the others
// by chance in less than a share `level` of series.
std::optional<UndatedChange> find_modes(std::span<const double> values,
                                        std::vector<std::size_t>& changes, double cost,
                                        double level);
// Of what leaves so many squares.
double cost_of_squares(double squares, std::size_t sessions);

}  // namespace paceline
