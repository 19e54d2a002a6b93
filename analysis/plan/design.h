// How many rounds or sessions a gate needs to see a change of time, and what they cost.
//
// A gate with threshold T passes what is excluded to be worse by 2 T. So to see a change X, the
// plan gives the gate T = X / 2 and enough rounds that a point slower by X is red with the power
// asked for (below).
//
// The noise of a plan is that of the noisiest point, and as high as the pilot leaves open (80 %).
//
// For stored sessions, the means of r runs vary by sqrt(session^2 + (round^2 + run^2) / r).
// Kalibera and Jones' optimum would be a single run in each of many sessions, as a session itself
// costs no GPU-hours, but it costs a day. So the plan shows what each r costs in both.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/gate/judge.h"
#include "analysis/plan/noise.h"

namespace paceline {

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

struct DesignRequest {
  std::string study, workload;
  std::vector<std::string> points;  // of the spec, by the gate's names
  bool on_cores = true;             // hours are core-hours
  double detect = 0.03, power = 0.95;
  int rounds = 5;  // of the gate as it is
  double threshold = 0.025;
};

struct SessionDesign {
  int repeats = 1, sessions = 0;  // sessions: of each side; 0: more than kMostRounds
  std::size_t runs = 0;           // of both sides
  std::optional<double> hours;
};

struct Design {
  DesignRequest request;
  Noise noise;
  bool is_stated = false;       // the noise, by the user
  double sd = 0, assumed = 0;   // of a run of the noisiest point: as estimated, and as planned with
  double outlying = 0;          // share of runs that stand out, as planned with
  double outlying_at_most = 0;  // as the pilot leaves open
  std::string noisiest;         // its name; empty: noise is stated
  std::optional<double> seen;   // by the gate as it is: a share of the time; empty: not even 170 %
  double threshold = 0;         // proposed
  // 0: more than kMostRounds. With the noise as estimated; with as many that stand out as possible.
  int rounds = 0, rounds_as_estimated = 0, rounds_at_most = 0;
  // The power of these rounds if 5 % of runs are outliers, where the plan assumes none.
  std::optional<double> power_if_some_stand_out;
  SequentialOutcome equal, slower;        // of a gate that goes on until it is decided
  std::size_t runs = 0;                   // of both builds, in these rounds
  std::optional<double> hours_per_round;  // of both builds; empty: not known
  std::size_t points_without_hours = 0;
  std::vector<SessionDesign> sessions;  // empty: how sessions differ is not known
};

// Noise that is stated, of a run.
Noise stated_noise(double sd);

Design make_design(const DesignRequest& request, const Noise& noise);

// JSON: {"schema": 1, "study", "points", "detect", "power", "levels": [{"level", "sd", ...}],
// "as_it_is": {...}, "needed": {...}, "until_decided": {...}, "sessions": [...], "notes"}.
Document design_document(const Design& design);

// Thresholds from a gate's own noise: what a build that was compared with itself says about each
// quantity.

struct Proposal {
  Quantity quantity = Quantity::time;
  std::size_t points = 0;
  // Standard deviation of a paired difference of the noisiest point, as high as its rounds leave
  // open (upper_sd()). 0: equal runs gave equal values.
  double noise = 0;
  // The smallest with which a gate of so many rounds finds twice as much in 95 % of cases, rounded
  // up to 2 digits. Empty: none up to 100 %, or there is no noise.
  std::optional<double> threshold;
};

// In the order of quantities(). Without checks that paired no rounds.
std::vector<Proposal> propose_thresholds(const Judgement& of_itself, int rounds);

// A table, and the options to paste.
Section proposals_section(const std::vector<Proposal>& proposals, const Thresholds& now,
                          int rounds);

// How a gate came to its verdict.
struct GateKind {
  bool has_fresh_runs = false;  // what did not pass would have been measured again
  int most_rounds = 0;          // of a gate until it is decided; 0: it is none
};

// The smallest slowdown of one point that would have ended red in 95 % of such gates, at the noise
// of the noisiest point, as high as its runs leave open. Empty: it is not known, or none is.
std::optional<double> seen_slowdown(const Judgement& judgement, const GateKind& kind);

// How often equal builds would be red in such gates if neighbouring rounds had this correlation, of
// times that vary as these do (simulated). Empty of gates that allow for it, and without rounds.
std::optional<double> red_if_rounds_resemble(const Judgement& judgement, const GateKind& kind,
                                             double correlation = kUsualResemblance);

// "--threshold" for time, "--serial-fraction-threshold" and so on for the others.
std::string threshold_option(const QuantityInfo& info);

}  // namespace paceline
