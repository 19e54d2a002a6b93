#include "engine/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "engine/core/error.h"

namespace paceline {

namespace {

// Damerau and Levenshtein's, in which exchanging two neighbours is one edit. Needs three rows.
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

template <typename Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// What may stand on different lines: not "3.8 %", nor "[0.2, 7.3]".
std::vector<std::string> split_for_lines(const std::string& sentence) {
  constexpr std::size_t kLongestKept = 30;
  std::vector<std::string> parts;
  for (const std::string& word : split(sentence, ' ')) {
    const bool is_within = !parts.empty() && parts.back().size() < kLongestKept &&
                           parts.back().rfind('[') != std::string::npos &&
                           parts.back().find(']', parts.back().rfind('[')) == std::string::npos;
    if (!parts.empty() && (is_within || word.starts_with('%'))) {
      parts.back() += ' ' + word;
    } else {
      parts.push_back(word);
    }
  }
  return parts;
}

constexpr std::size_t kMostListed = 8;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// How many bytes the first one announces, and the bits of the code that it holds.
Character begun_by(unsigned char first) {
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first < 0xe0) return {first & 0x1fU, 2};
  if (first >= 0xe0 && first < 0xf0) return {first & 0x0fU, 3};
  if (first >= 0xf0 && first < 0xf5) return {first & 0x07U, 4};
  return {};
}

// Where the first byte is that begins no character of UTF-8; the size where there is none.
std::size_t find_fault(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) break;
    at += character.bytes;
  }
  return std::min(at, text.size());
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.size() > 64) return std::nullopt;
  std::optional<std::string> best;
  // Two edits of a word as short as "gif" make another word.
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
  constexpr std::size_t kMost = 24;  // an error keeps both ends of a longer text, not its middle
  return "known: " + join_first(kMost, candidates);
}

void throw_unknown(std::string_view what, std::string_view name,
                   const std::vector<std::string>& known, std::string_view where) {
  throw usage_error(fmt::format("unknown {} \"{}\"", what, name), std::string(where),
                    suggestion(name, known));
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

std::string seconds_text(double seconds) {
  constexpr double kGrouped = 10000, kAbsurd = 1e12;
  const bool is_grouped = seconds >= kGrouped && seconds < kAbsurd;
  return (is_grouped ? format_rate(seconds) : fmt::format("{:.4g}", seconds)) + " s";
}

std::string format_seconds(double seconds) {
  if (seconds < 0) return "-" + format_seconds(-seconds);
  // Bounds are where rounding would reach the next unit.
  if (seconds > 0 && seconds < 0.9995e-6) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds > 0 && seconds < 99.95e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 99.95e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  constexpr double kLongest = 3600.0 * 100'000;
  if (seconds >= kLongest) return fmt::format("{:.3g} h", seconds / 3600);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string shell_quote(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("@%_+=:,./-").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_quote(const std::vector<std::string>& words) {
  return join(mapped(words, [](const std::string& word) { return shell_quote(word); }), " ");
}

std::string counted(double number, std::string_view noun) {
  const std::string text =
      number == std::floor(number) ? fmt::format("{:.0f}", number) : fmt::format("{:g}", number);
  return fmt::format("{} {}{}", text, noun, number == 1 ? "" : "s");
}

void add_to_key(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key += ':';
  key += part;
}

std::size_t display_width(std::string_view text) {
  return count_where(text, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
}

std::string wrapped(const std::string& sentence, std::size_t width, const std::string& first,
                    std::size_t next) {
  std::string text, line = first;
  bool begun = false;
  for (const std::string& word : split_for_lines(printable(sentence))) {
    if (begun && display_width(line) + 1 + display_width(word) > width) {
      text += line + '\n';
      line = std::string(next, ' ');
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
  }
  return text + line + '\n';
}

std::string join_first(std::size_t most, const std::vector<std::string>& parts,
                       std::string_view separator) {
  if (parts.size() <= most) return join(parts, separator);
  const std::vector<std::string> first(parts.begin(),
                                       parts.begin() + static_cast<std::ptrdiff_t>(most));
  return fmt::format("{}{}{} more", join(first, separator), separator == ", " ? " and " : separator,
                     parts.size() - most);
}

std::string names_text(const std::vector<std::string>& names) {
  return join_first(kMostListed, names);
}

std::vector<std::string> number_ranges(const std::vector<int>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0, last = 0; i < numbers.size(); i = last + 1) {
    for (last = i; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    ranges.push_back(last == i ? std::to_string(numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
  }
  return ranges;
}

std::string numbers_text(const std::vector<int>& numbers) {
  if (numbers.size() > kMostListed) return names_text(number_ranges(numbers));
  return join(mapped(numbers, [](int number) { return std::to_string(number); }), ", ");
}

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers_text(ranks);
}

std::vector<int> parse_numbers(const std::string& ranges) {
  std::vector<int> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const auto ends = split(range, '-');
    const auto low = to_integer(ends.front()), high = to_integer(ends.back());
    for (auto number = low.value_or(0); low && high && number <= *high; ++number) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

Character character_at(std::string_view text, std::size_t at) {
  Character character = begun_by(static_cast<unsigned char>(text[at]));
  if (at + character.bytes > text.size()) return {};
  for (std::size_t i = 1; i < character.bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next >> 6) != 2) return {};
    character.code = (character.code << 6) | (next & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = character.code >= 0xd800 && character.code < 0xe000;
  if (character.code < kLeast[character.bytes] || is_surrogate || character.code > 0x10ffff) {
    return {};
  }
  return character;
}

bool is_utf8(std::string_view text) {
  return find_fault(text) == text.size();
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfffe || code == 0xffff;
}

std::string fault_of_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) return "is not UTF-8";
    if (is_control(character.code)) {
      return fmt::format("has a control character (U+{:04X})",
                         static_cast<std::uint32_t>(character.code));
    }
    at += character.bytes;
  }
  return "";
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) {
      result += kReplacement;
      ++at;
      continue;
    }
    const bool is_kept = character.bytes == 1 && kept.find(text[at]) != std::string_view::npos;
    if (is_control(character.code) && !is_kept) {
      result += ' ';
    } else {
      result += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return result;
}

void refuse_utf16(std::string_view text, const std::string& name) {
  if (text.size() < 2) return;
  const bool marked = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (marked || (text[0] == '\0') != (text[1] == '\0')) {
    throw input_error("the file is UTF-16, or not text", name, "save it as UTF-8");
  }
}

void require_utf8(std::string_view text, const std::string& name) {
  refuse_utf16(text, name);
  const std::size_t at = find_fault(text);
  if (at == text.size()) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw input_error(fmt::format("the text is not UTF-8 (byte 0x{:02X})",
                                static_cast<unsigned>(static_cast<unsigned char>(text[at]))),
                    fmt::format("{}:{}", name, line),
                    "save it as UTF-8, as by: iconv -f WINDOWS-1252 -t UTF-8");
}

}  // namespace paceline
