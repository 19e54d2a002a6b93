// Specs, points and error lines for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/error.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

namespace paceline::testing {

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

// The line a user would see; empty if nothing was thrown. Bad input and wrong usage only, and never
// more than one line.
template <typename Call>
std::string catch_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_TRUE(error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  }
  return "";
}

inline void expect_parts(const std::string& line, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(line.find(part), std::string::npos) << "\"" << part << "\" is not in: " << line;
  }
}

}  // namespace paceline::testing
