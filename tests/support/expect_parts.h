// What a text holds, said of its parts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// Fails at the caller's line unless `text` holds every one of `parts`.
inline void expect_parts(const std::string& text, const std::vector<std::string>& parts,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (const std::string& part : parts) {
    if (!contains(text, part)) ADD_FAILURE_AT(file, line) << "no \"" << part << "\" in: " << text;
  }
}

// Fails at the caller's line if `text` holds one of `parts`.
inline void expect_no_parts(const std::string& text, const std::vector<std::string>& parts,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (const std::string& part : parts) {
    if (contains(text, part)) ADD_FAILURE_AT(file, line) << "\"" << part << "\" in: " << text;
  }
}

}  // namespace paceline
