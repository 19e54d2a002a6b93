// Latency and bandwidth of each level, from measured all-reduces.
#pragma once

#include <optional>
#include <vector>

#include "analysis/predict/network.h"

namespace paceline {

// An all-reduce, or several in a row.
struct SumSample {
  double bytes = 0;  // of one rank, in all
  double calls = 1;
  int replicas = 2, nodes = 1;
  double seconds = 0;  // in all
};

struct FittedLinks {
  LinkNetwork network;
  double off = 0;              // root of the mean square of relative deviations
  bool form_is_known = false;  // another form fits clearly worse
  int most_replicas = 0;       // of a sample
};

// Nodes of `replicas_per_node`, a level "core" inside and "node" between them, as far as samples
// cross it. Each form is fitted, level by level from the inside: least squares of relative errors
// (small messages count less) over call_seconds (if samples have several sizes), latency and bytes.
// The form that fits best is taken: a ring, unless another one is off by less than nine tenths.
// Empty without samples of two or more replicas.
std::optional<FittedLinks> fit_links(const std::vector<SumSample>& samples, int replicas_per_node);

}  // namespace paceline
