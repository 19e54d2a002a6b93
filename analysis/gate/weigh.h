// One quantity of one point on both sides: the difference, its uncertainty and the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"
#include "analysis/gate/side.h"
#include "analysis/statistics/anytime.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

// The runs that a check of the machine leaves aside: those made while other processes kept the CPUs
// busy, and those that stand out of the others.
//
// A busy run is longer whatever the build is. Quiet runs are compared, of rounds in which both
// sides were quiet, where 3 of each side are left. Else rounds in which both were alike, quiet or
// busy, where 3 are left: what kept the machine busy then met both. Without rounds all runs are
// compared where both sides have the same share of busy ones. Else nothing is decided.
//
// Business that meets one side of interleaved rounds is unlikely to come from elsewhere: the sides
// take turns within seconds, in a shuffled order. It may be the build's own doing, so then quiet
// runs may convict, and acquit nobody.
//
// Runs that stand out are left aside, too, and weighed (judge.h): how many of which side, and what
// the mean is with them.

struct SideNames {
  std::string baseline = "baseline", current = "current";
};

struct Compared {
  Samples baseline, current;
  bool is_paired = false;       // by rounds
  std::size_t rounds_made = 0;  // that both sides have, with those left aside
  std::size_t busy = 0;         // runs left aside for it, with those of the other side's rounds
  std::size_t outlying = 0;     // of rounds or runs, left aside
  StandingOut standing_out;
  std::vector<std::string> notes;  // on what was left aside: "7 of 10 rounds left aside, ..."
  std::string why_undecidable;     // why these runs decide nothing; empty: they may
  std::string one_sided;           // a sentence on business of one side; empty: there was none
  bool is_surely_the_current = false;
};

Compared samples_to_compare(const Samples& baseline, const Samples& current,
                            const QuantityInfo& info, const SideNames& names);

struct Weighed {
  Check check;
  Difference difference;
  bool can_rerun = true;  // `gate --rerun` runs the subject
  double units = 0;       // rounds, sessions or runs per side, if both have equally many
  Compared compared{};    // without its samples
  std::optional<AnytimeRounds> rounds{};  // of a gate that goes on until it is decided
  std::size_t most_rounds = 0;            // of such a gate
  double usual_share = 0;                 // of runs of the baseline that stand out, over all points
};

// `options.stopping` is that of rounds and runs, not of sessions.
Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, const GateOptions& options,
                      const SideNames& names = {});

// Fills in the check's difference.
void fill_in(Weighed& weighed);

// Sets the verdict of one of `checks` checks, after p was adjusted for all of them.
void decide(Weighed& weighed, std::size_t checks);

// Variance shrinkage: many checks together improve the variance estimate of each.

// Shrinks the standard error of each difference towards the typical one, and adds the degrees of
// freedom gained: few if their variances differ by more than chance, many if they are similar.
// Smyth, "Linear models and empirical Bayes methods for assessing differential expression", Stat.
// Appl. Genet. Mol. Biol. 3(1), 2004: variances s^2 with d degrees of freedom come from a scaled
// inverse chi-square with d0 and s0^2, estimated from the mean and variance of log s^2. The
// moderated variance is (d0 s0^2 + d s^2) / (d0 + d).
//
// Fewer than 4 differences, and differences without any variance, are not changed.
void moderate(const std::vector<Difference*>& differences);

}  // namespace paceline
