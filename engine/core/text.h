// Text helpers: nearest name, splitting, parsing of untrusted numbers, units for people.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The candidate with the smallest edit distance, if it is close enough to be a typo.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// "did you mean "cpus_per_task"?", or "known: a, b, c" if none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Removes duplicates; the first occurrence stays.
std::vector<std::string> each_once(const std::vector<std::string>& texts);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);  // ASCII only

// Appends `part` to a key so that different parts never make equal keys, whatever they contain.
void add_to_key(std::string& key, std::string_view part);

// Copies as much as fits. The result is null-terminated if `to` was zeroed.
template <std::size_t N>
void copy_text(std::string_view text, std::array<char, N>& to) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}

// Parses the whole text as a number. Empty on failure. Reals must be finite.
std::optional<std::int64_t> to_integer(std::string_view text);
std::optional<double> to_real(std::string_view text);

// "12.50"; from 1e15, where a double has no more digits, "1e+308".
std::string decimal(double value, int digits);
// The decimals that show so many digits of `value`, at most 9; none of what is not finite.
int decimals_for(double value, int digits);

std::string format_bytes(double bytes);      // "11.6 MB", powers of 1000
std::string format_seconds(double seconds);  // "1.24 s", "3 min 20 s", "850 us"
std::string format_rate(double per_second);  // "54,229", "2.31"
std::string counted(std::int64_t number, std::string_view noun);  // "1 row", "2 rows"
std::string shell_quote(std::string_view word);

}  // namespace paceline
