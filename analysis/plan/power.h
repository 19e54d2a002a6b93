// What a gate can see: the probabilities of its verdicts on one point, by the gate's own rules
// (gate/judge.h).
//
// The mean of n values with standard deviation `sd` is normal; its estimated variance is that times
// chi-square over its degrees of freedom, independent of the mean. A regression needs the mean at
// the threshold or above it, and beyond t quantiles of its standard error; a pass needs it below,
// and the upper end of its interval below twice the threshold. So each probability is one integral
// over chi-square.
//
// A gate with fresh runs finds a regression if the first runs do not pass, and the fresh ones are
// red. Holm's adjustment covers the suspects, to which equal points contribute by chance.
//
// Rounds in which a run stands out are left aside, as the gate does (gate/weigh.h): each with
// the same probability, independently, on either side. Where too many do, nothing is decided; where
// they are more on the current side, nothing passes.
//
// Variances are not moderated here as the gate moderates those of 4 points or more, which finds
// slightly more.
#pragma once

#include <cstddef>
#include <functional>

namespace paceline {

struct Limits {
  double threshold = 0;        // on the scale of differences: log(1.025) for 2.5 % of time
  double twice_threshold = 0;  // log(1.05)
};

// For a factor (time, loss), or for a plain difference.
Limits make_limits(double threshold, bool is_factor);

// How precisely the mean is known.
struct Precise {
  double error = 0;               // true standard error of the mean
  double degrees_of_freedom = 0;  // of its estimate
};

// Rounds of which the gate leaves this share aside.
struct Rounds {
  int count = 0;
  double sd = 0;  // of the others' differences
  double left_aside = 0;
};

// n sessions on each side; the means of sessions have standard deviation `sd`.
Precise of_sessions(int sessions, double sd);

double chance_of_pass(const Limits& limits, const Precise& precise, double effect);
// By one test among `tests`.
double chance_of_regression(const Limits& limits, const Precise& precise, double effect,
                            std::size_t tests);

// That a point which is slower by `effect` ends red after fresh runs, among `others` equal points
// that are as noisy.
double chance_confirmed(const Limits& limits, const Rounds& rounds, double effect,
                        std::size_t others);

// Fewest rounds, from 3 on, with which the chance is `power`. 0: more than kMostRounds.
constexpr int kMostRounds = 200;
int rounds_needed(const Limits& limits, double sd, double left_aside, double effect,
                  std::size_t others, double power);

// The same for sessions on each side, in which nothing is run again: Holm covers all points.
int sessions_needed(const Limits& limits, double sd, double effect, std::size_t others,
                    double power);

// Smallest effect, of differences, whose chance is `power`. Infinite: none below a factor of e.
double smallest_seen(const std::function<double(double effect)>& chance, double power);

// Mean number of rounds of a point in a gate that goes on until it is decided, and how often it is
// decided within `most` rounds. Of simulated gates with a fixed seed. `rounds`: its sd and share
// left aside.
struct SequentialOutcome {
  double rounds = 0, decided = 0, regression = 0;
};
SequentialOutcome until_decided(const Limits& limits, const Rounds& rounds, double effect,
                                std::size_t tests, int most, int gates = 4000);

}  // namespace paceline
