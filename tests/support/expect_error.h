// What a call throws, and what a text holds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"

namespace paceline {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_TRUE(contains(text, part)) << "no \"" << part << "\" in: " << text;
  }
}

// The line that a user would see, of an Error of this kind. Without a kind, of bad input or wrong
// usage. Empty if nothing is thrown.
inline std::string catch_error(std::optional<ErrorKind> kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const bool is_expected =
        kind ? error.kind() == *kind
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

// Fails unless `call` throws an Error of this kind whose line holds every one of `parts`.
inline void expect_error(ErrorKind kind, const std::vector<std::string>& parts,
                         const std::function<void()>& call) {
  const std::string line = catch_error(kind, call);
  EXPECT_NE(line, "") << "nothing was thrown";
  expect_parts(line, parts);
}

}  // namespace paceline
