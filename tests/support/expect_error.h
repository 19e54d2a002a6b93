// What a call throws, for tests of bad input.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace paceline {

// Fails unless `call` throws an Error of this kind whose line holds every one of `parts`.
inline void expect_error(ErrorKind kind, const std::vector<std::string>& parts,
                         const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(exit_code(error.kind()), exit_code(kind)) << line;
    for (const std::string& part : parts) {
      EXPECT_NE(line.find(part), std::string::npos) << "no \"" << part << "\" in: " << line;
    }
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

}  // namespace paceline
