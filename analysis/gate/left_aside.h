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
#pragma once

#include <string>

#include "analysis/gate/samples.h"

namespace paceline {

struct SideNames {
  std::string baseline = "baseline", current = "current";
};

struct RunsOfSides {
  std::size_t baseline = 0, current = 0;
};

struct Compared {
  Samples baseline, current;
  bool is_paired = false;          // by rounds
  std::size_t busy = 0;            // runs left aside for it, with those of the other side's rounds
  RunsOfSides outlying;            // runs that stand out, left aside
  std::vector<std::string> notes;  // on what was left aside: "7 of 10 rounds left aside, ..."
  std::string why_undecidable;     // why these runs decide nothing; empty: they may
  std::string one_sided;           // a sentence on business of one side; empty: there was none
  bool is_surely_the_current = false;
};

Compared samples_to_compare(const Samples& baseline, const Samples& current,
                            const QuantityInfo& info, const SideNames& names);

}  // namespace paceline
