// What a call throws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "tests/support/expect_parts.h"

namespace paceline {

// The line that a user would see, of an Error with the exit code of this kind. Without a kind, of
// bad input or wrong usage. Empty if nothing is thrown.
inline std::string catch_error(std::optional<ErrorKind> kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const bool is_expected =
        kind ? exit_code(error.kind()) == exit_code(*kind)
             : error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage;
    EXPECT_TRUE(is_expected) << error.what();
    EXPECT_FALSE(contains(error.what(), "\n")) << error.what();
    return error.what();
  }
  return "";
}
inline std::string catch_error(const std::function<void()>& call) {
  return catch_error({}, call);
}

// Fails at the caller's line unless `call` throws an Error of this kind whose line holds every one
// of `parts`.
inline void expect_error(ErrorKind kind, const std::vector<std::string>& parts,
                         const std::function<void()>& call, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  const std::string caught = catch_error(kind, call);
  if (caught.empty()) ADD_FAILURE_AT(file, line) << "nothing was thrown";
  expect_parts(caught, parts, file, line);
}

}  // namespace paceline
