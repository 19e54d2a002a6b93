// For tests of builds without the engine (-DPACELINE_ENGINE=OFF).
#pragma once

#include "results/names.h"

namespace paceline {
inline namespace testing {

inline bool has_engine() {
  return find_name("backend", "mirrored").built;
}

// Skips a test whose points have to be able to run here.
#define PACELINE_NEEDS_ENGINE() \
  if (!paceline::testing::has_engine()) GTEST_SKIP() << "this build has no engine"

}  // namespace testing
}  // namespace paceline
