// Which elements of the parameter arena have weight decay: kernels of dense layers and
// convolutions. Biases, gamma and beta have none (He et al., arXiv 1812.01187, section 3.1: "no
// bias decay").
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

inline bool decays(const ParameterInfo& parameter) {
  return parameter.fan_in > 0;
}

// The arena as stretches with or without decay. Adjacent stretches of the same kind are merged.
class Stretches {
 public:
  explicit Stretches(const Plan& plan) {
    for (const ParameterInfo& parameter : plan.parameters) {
      if (!ends_.empty() && ends_.back().decays == decays(parameter)) continue;
      if (!ends_.empty()) ends_.back().end = parameter.offset;
      ends_.push_back({plan.arena_elements, decays(parameter)});
    }
  }

  // Calls body(begin, end, decays) for the parts of [begin, end), in order. Parts start at
  // parameter boundaries.
  template <typename Body>
  void over(std::size_t begin, std::size_t end, Body body) const {
    auto at = std::upper_bound(ends_.begin(), ends_.end(), begin,
                               [](std::size_t place, const End& one) { return place < one.end; });
    for (; begin < end; ++at) {
      const std::size_t stop = std::min(end, at->end);
      body(begin, stop, at->decays);
      begin = stop;
    }
  }

 private:
  struct End {
    std::size_t end;
    bool decays;
  };
  std::vector<End> ends_;
};

}  // namespace paceline
