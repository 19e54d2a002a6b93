#include "engine/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace paceline {

namespace {

// Of Levenshtein and Damerau, two neighbours exchanged being one edit, with three rows.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({change, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.size() > 64) return std::nullopt;
  std::optional<std::string> best;
  // Of a word as short as "gif", two edits leave nothing that was meant.
  std::size_t best_distance =
      std::min(std::max<std::size_t>(2, word.size() / 3), word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    if (word.size() >= 3 && candidate.starts_with(word)) distance = 1;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto near = nearest(word, candidates)) return "did you mean \"" + *near + "\"?";
  return "known: " + join(candidates, ", ");
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string> each_once(const std::vector<std::string>& texts) {
  std::vector<std::string> once;
  for (const std::string& text : texts) {
    if (std::find(once.begin(), once.end(), text) == once.end()) once.push_back(text);
  }
  return once;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

namespace {

template <typename Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> to_integer(std::string_view text) {
  return to_number<std::int64_t>(text);
}

std::optional<double> to_real(std::string_view text) {
  const auto number = to_number<double>(text);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return number;
}

int decimals_for(double value, int digits) {
  constexpr double kMost = 9;
  const double size = std::abs(value);
  if (!std::isfinite(size) || size == 0) return 0;
  return static_cast<int>(std::clamp(digits - 1 - std::floor(std::log10(size)), 0.0, kMost));
}

std::string decimal(double value, int digits) {
  return std::abs(value) < 1e15 ? fmt::format("{:.{}f}", value, digits)
                                : fmt::format("{:.3g}", value);
}

std::string format_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  // From 999.5 on rounding would reach the next unit.
  while (bytes >= (unit == 0 ? 1000 : 999.5) && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return decimal(bytes, unit == 0 || bytes >= 100 ? 0 : 1) + " " + kUnits[unit];
}

std::string format_rate(double per_second) {
  if (per_second < 99.95) return fmt::format("{:.3g}", per_second);
  std::string digits = fmt::format("{:.0f}", per_second);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string format_seconds(double seconds) {
  if (seconds < 0) return "-" + format_seconds(-seconds);
  // Bounds are where rounding would reach the next unit.
  if (seconds > 0 && seconds < 0.9995e-6) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds > 0 && seconds < 99.95e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  constexpr double kLongest = 3600.0 * 100'000;
  if (seconds >= kLongest) return fmt::format("{:.3g} h", seconds / 3600);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string shell_quote(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("@%_+=:,./-").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

void add_to_key(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key += ':';
  key += part;
}

}  // namespace paceline
