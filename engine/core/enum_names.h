// The names of an enumeration's values, in one table for both directions.
//
//   constexpr EnumName<Verdict> kVerdicts[] = {{Verdict::pass, "pass"}, ...};
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace paceline {

template <typename Enum>
struct EnumName {
  Enum value;
  const char* name;
};

template <typename Enum, std::size_t N>
constexpr const char* name_in(const EnumName<Enum> (&names)[N], Enum value) {
  for (const auto& row : names) {
    if (row.value == value) return row.name;
  }
  return "?";
}

template <typename Enum, std::size_t N>
constexpr std::optional<Enum> value_in(const EnumName<Enum> (&names)[N], std::string_view name) {
  for (const auto& row : names) {
    if (name == row.name) return row.value;
  }
  return std::nullopt;
}

}  // namespace paceline
