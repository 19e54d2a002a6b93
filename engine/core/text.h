// Text helpers: nearest name, splitting, parsing of untrusted numbers, units for people; and lists.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace paceline {

// What a function or a member says of each element, in order.
template <typename Range, typename Function>
auto mapped(Range&& range, Function function) {
  using Result = std::invoke_result_t<Function&, decltype(*std::begin(range))>;
  std::vector<std::remove_cvref_t<Result>> all;
  for (auto&& each : range) all.push_back(std::invoke(function, each));
  return all;
}

template <typename Element>
std::vector<const Element*> pointers_to(const std::vector<Element>& all) {
  return mapped(all, [](const Element& each) { return &each; });
}

// The candidate with the smallest edit distance, if it is close enough to be a typo.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// "did you mean "cpus_per_task"?", or "known: a, b, c" if none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

// Throws usage: unknown `what` "name", with its suggestion().
[[noreturn]] void throw_unknown(std::string_view what, std::string_view name,
                                const std::vector<std::string>& known, std::string_view where);

// The row whose `name_of` is `name`, or throw_unknown().
template <typename Rows, typename NameOf>
const auto& row_named(const Rows& rows, NameOf name_of, std::string_view name,
                      std::string_view what, std::string_view where) {
  const auto name_of_row = [&](const auto& row) { return std::string(std::invoke(name_of, row)); };
  for (const auto& row : rows) {
    if (name_of_row(row) == name) return row;
  }
  throw_unknown(what, name, mapped(rows, name_of_row), where);
}

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
// How many decimals show so many significant digits of `value`, at most 9; 0 if it is not finite.
int decimals_for(double value, int digits);

std::string format_bytes(double bytes);                     // "11.6 MB", powers of 1000
std::string format_seconds(double seconds);                 // "1.24 s", "3 min 20 s", "850 us"
std::string format_rate(double per_second);                 // "54,229", "2.31"
std::string seconds_text(double seconds);                   // to compare: "9.971 s", "129,686 s"
std::string counted(double number, std::string_view noun);  // "1 row", "2 rows", "2.5 rows"
std::string shell_quote(std::string_view word);
std::string shell_quote(const std::vector<std::string>& words);  // with a space between

// Wraps a sentence into lines of at most `width` columns (longer words get a line of their own),
// each with a line break. The first line starts with `first`, the others with `next` spaces.
std::string wrapped(const std::string& sentence, std::size_t width, const std::string& first = "",
                    std::size_t next = 2);

std::size_t display_width(std::string_view text);  // width on a terminal: characters, not bytes

// Short text for long lists, for messages, and back.

// The first `most` of them: "a, b, c and 4 more"; with "; " between them, "a; b; c; 4 more".
std::string join_first(std::size_t most, const std::vector<std::string>& parts,
                       std::string_view separator = ", ");

// "n1, n2"; if there are more than eight, the first eight "and 504 more".
std::string names_text(const std::vector<std::string>& names);

// "0-3" and "5" of sorted numbers.
std::vector<std::string> number_ranges(const std::vector<int>& numbers);
// "2, 3, 5" from sorted numbers; if there are more than eight, their ranges: "0-97, 99".
std::string numbers_text(const std::vector<int>& numbers);

std::string ranks_text(const std::vector<int>& ranks);  // "rank 3", "ranks 2, 3"

// The numbers of such ranges, as the kernel writes lists of CPUs. Skips what is not a number.
std::vector<int> parse_numbers(const std::string& ranges);

// Checks UTF-8, and makes text safe for terminals.

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8 character starts here
};

Character character_at(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);

// Whether a terminal or editor interprets it instead of showing it: the control characters C0, DEL
// and C1 (U+009B starts a command, as ESC [ does), and characters that change the text direction.
bool is_control(char32_t code);

// Why `text` is not a valid line: "has a control character (U+000A)", "is not UTF-8". Empty: it is
// valid.
std::string fault_of_text(std::string_view text);

// Replaces control characters, except those in `kept`, with spaces, and bytes that are not UTF-8
// with U+FFFD.
std::string printable(std::string_view text, std::string_view kept = {});

// Throw input naming the file `name`, and the line, if its text is of another encoding: there,
// names that differ could become the same.
void refuse_utf16(std::string_view text, const std::string& name);
void require_utf8(std::string_view text, const std::string& name);

// The names of an enumeration's values, in one table for both directions.
//
//   constexpr EnumName<Verdict> kVerdicts[] = {{Verdict::pass, "pass"}, ...};

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

// The values of a function or member of each element, each once, sorted.
template <typename Range, typename Function>
auto distinct(Range&& range, Function function) {
  using Result = std::invoke_result_t<Function&, decltype(*std::begin(range))>;
  std::set<std::remove_cvref_t<Result>> found;
  for (auto&& each : range) found.insert(std::invoke(function, each));
  return found;
}

// How many elements meet a condition.
template <typename Range, typename Condition>
std::size_t count_where(const Range& range, Condition condition) {
  return static_cast<std::size_t>(std::ranges::count_if(range, condition));
}

// As mapped(), of the elements that meet a condition.
template <typename Range, typename Condition, typename Function>
auto mapped_if(Range&& range, Condition condition, Function function) {
  using Result = std::invoke_result_t<Function&, decltype(*std::begin(range))>;
  std::vector<std::remove_cvref_t<Result>> all;
  for (auto&& each : range) {
    if (std::invoke(condition, each)) all.push_back(std::invoke(function, each));
  }
  return all;
}

// What a function or a member knows of each element, in order; of some it may know nothing.
template <typename Range, typename Function>
auto known_values(Range&& range, Function function) {
  std::vector<std::remove_cvref_t<decltype(*std::invoke(function, *std::begin(range)))>> all;
  for (auto&& each : range) {
    if (auto value = std::invoke(function, each)) all.push_back(*value);
  }
  return all;
}

// The elements of the lists that a function or a member says of each element, in order.
template <typename Range, typename Function>
auto flattened(Range&& range, Function function) {
  std::remove_cvref_t<std::invoke_result_t<Function&, decltype(*std::begin(range))>> all;
  for (auto&& each : range) {
    auto&& some = std::invoke(function, each);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

template <typename Range, typename Function>
auto summed(Range&& range, Function function) {
  std::remove_cvref_t<std::invoke_result_t<Function&, decltype(*std::begin(range))>> sum{};
  for (auto&& each : range) sum += std::invoke(function, each);
  return sum;
}

}  // namespace paceline
