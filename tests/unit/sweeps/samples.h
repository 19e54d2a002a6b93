// Specs, points and error lines for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/error.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"
#include "tests/support/expect_error.h"

namespace paceline {
inline namespace testing {

// A spec of workload mnist-mlp, `keys` being more of its text: R"("axes": {"gpus": [1, 2]})".
inline Spec spec_with(const std::string& keys) {
  return parse_spec("s.json", R"({"name": "s", "workload": "mnist-mlp", )" + keys + "}");
}

// Backends that are not built here are kept: these tests also pass without the engine.
inline Expansion make_expansion(const std::string& keys, int cores = 8) {
  return expand(spec_with(keys), cores, Unbuilt::keep);
}

inline std::vector<std::string> plan_points(const Expansion& expansion) {
  std::vector<std::string> texts;
  for (const PlannedPoint& planned : expansion.points) texts.push_back(planned.point.text());
  return texts;
}

inline std::vector<std::string> plan_points(const std::string& keys, int cores = 8) {
  return plan_points(make_expansion(keys, cores));
}

}  // namespace testing
}  // namespace paceline
