#include "run/result_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::string_view kNumber = "{number}", kGrouped = "{grouped}";
constexpr std::string_view kGroupedGroup =
    "([0-9]{1,3}(?:,[0-9]{3})+(?:\\.[0-9]+)?|[0-9]+(?:\\.[0-9]+)?)";
// What a terminal does not show, colours and zero bytes, and all that looks like a space.
constexpr char kHidden[] = R"((?:\x1b\[[0-9;]*m|[\x00-\x07\x0e-\x1a\x7f]))";
constexpr char kSpace[] = R"((?:[ \t]|\xc2?\xa0|\xe2\x80[\x80-\x8a\xaf]|\xe3\x80\x80))";
// Not finite ones, too, so that they are refused instead of overlooked.
constexpr std::string_view kNumberGroup =
    "([-+]?(?:(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[nN]a[nN]|[iI]nf(?:inity)?))";

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (is_digit_at(text, at)) ++at;
  return at;
}

// "1,234", "1,234,567.8", "12,34,567", "1.234,5" and "12,5" are numbers, "1,2,3" and "0.5,0.25" are
// lists.
bool joins_by_comma(std::string_view text, std::size_t comma) {
  constexpr std::size_t kLongest = 40;
  thread_local const Pattern number(
      R"(^(?:[0-9]*(?:,[0-9]{3}(?:\.[0-9.]*)?)+|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?)"
      R"(|[0-9]*,[0-9]*|[0-9.]*\.[0-9]{3},[0-9]*)$)");
  const auto is_part = [&](std::size_t at) {
    return is_digit_at(text, at) || text[at] == ',' || text[at] == '.';
  };
  std::size_t begin = comma, end = comma + 1;
  while (begin > 0 && is_part(begin - 1)) {
    if (comma - --begin > kLongest) return false;
  }
  while (end < text.size() && is_part(end) &&
         (is_digit_at(text, end) || is_digit_at(text, end + 1))) {
    if (++end - comma > kLongest) return false;
  }
  return number.find(text.substr(begin, end - begin)).has_value();
}

// The same beyond ASCII: spaces, marks and separators before a digit of any script, and such
// digits, powers and fractions.
std::size_t wide_joint_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 16;
  thread_local const Pattern joint(
      R"(\G(?:[\p{Zs}\p{Cf}\p{Sk}\p{Lm}\p{Pi}\p{Pf}\p{Mn}\x{b7}\x{66b}\x{66c}\x{2032}-\x{2037})"
      R"(\x{2044}\x{ff07}\x{ff0c}\x{ff0e}\x{ff3f}](?=\p{N})|[\x{207a}\x{207b}]?\p{N}+))",
      Pattern::Text::utf8);
  // Behind a digit, these bytes are of another encoding, as Latin-1's no-break space; not its ±.
  thread_local const Pattern other_encoding(
      R"(\G(?:[\x80-\xb0\xb2-\xbf\xff](?=[0-9])|[\xb2\xb3\xb9\xbc-\xbe]))");
  if (at >= text.size() || static_cast<unsigned char>(text[at]) < 0x80) return 0;
  if (const auto byte = other_encoding.find(text, at)) return byte->whole.end - at;
  const auto found = joint.find(text.substr(at, kLongest));
  return found && found->whole.begin == 0 ? found->whole.end : 0;
}

// The length of what joins the digits before `at` with those behind it; 0: nothing does.
std::size_t joint_at(std::string_view text, std::size_t at, bool commas_group) {
  // A point, an exponent, the ':' of a clock, also behind a colour; " x 10^".
  thread_local const Pattern joint(
      fmt::format(R"(\G(?:{0}*(?:[._'+-]|[eEdD][-+]?|:(?=[0-9]{{2}}(?![0-9])))(?=[0-9]))"
                  R"(|{0}+(?=[0-9])|,(?=[0-9])|{1}[eE](?:[-+](?=[0-9])|(?=[0-9]+(?![0-9A-Za-z]))))"
                  R"(| *(?:\xc3\x97|\xc2\xb7|[xX*]) *10(?:\^|\*\*|(?=\xe2\x81|\xc2))))",
                  kHidden, kSpace));
  const auto found = joint.find(text, at);
  if (!found) return wide_joint_at(text, at);
  if (text[at] == ',' && !commas_group && !joins_by_comma(text, at)) return 0;
  return found->whole.end - at;
}

// "k" of "12.5k", of "12.5 k img/s" and of "12.5kimg/s", " million"; also of a hexadecimal number
// what follows its first digit, and of "1.#INF" what follows the point.
std::size_t end_of_multiplier(std::string_view text, std::size_t begin, std::size_t at) {
  thread_local const Pattern hex("\\G[xX](?s:(?=.))[0-9a-fA-F]*");
  thread_local const Pattern letter(
      fmt::format(R"(\G{0}*+(?:[kKMGT]|[bBm](?![A-Za-z])|{1}++(?:[kKMGT]i?(?![A-Za-z]))"
                  R"(|[kKMG](?=tok|im|it/|sam|seq|step)|B(?![A-Za-z:=]| *[0-9:=])))"
                  R"(|{1}*+(?i:thousand|lakh|crore|[mbtr]*illion|[mb]l?n)s?(?![A-Za-z]))"
                  R"(|(?:\.|(?<=\.))#[A-Z]+[0-9]*))",
                  kHidden, kSpace));
  const bool may_be_hex = at == begin + 1 && text[begin] == '0';
  auto found = may_be_hex ? hex.find(text, at) : std::nullopt;
  if (!found) found = letter.find(text, at);
  return found ? found->whole.end : at;
}

constexpr char kUnit[] =
    R"((?:(?:[mnu]|\xc2?\xb5|\xce\xbc)s(?:ecs?)?|(?:milli|micro|nano)(?:s|secs?|seconds?)?|minutes?)"
    R"(|hrs?|hours?|days?|weeks?|cycles|ticks))";

// "ms" of "850 ms", of "850 ± 3 [ms]" and of "time [ms]: 850", "m" of "3m 20s", "%"; empty: none
// that changes what the number means. "(min)" is a minimum.
std::string_view unit_at(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kLongestLabel = 32;
  thread_local const Pattern unit(
      fmt::format(R"((?i)\G(?:{0}|{1})*+(?:(?:\xc2?\xb1|\+/?-){1}*+[0-9.]++{1}*+)?)"
                  R"((?|[\[(]?{1}*+(%|{2}(?![A-Za-z])))"
                  R"(|((?:mins?|m|h|d)(?![A-Za-z=]))|\[(min|[mhd])\]|\(([mhd])\))"
                  R"(|(s(?:ecs?|econds?)?,? *[0-9]+ *{2}(?![A-Za-z/]| per))))",
                  kHidden, kSpace, kUnit));
  thread_local const Pattern label(
      fmt::format(R"((?i)[\[(_]({1})[\])]?["']?{0}*[:=]?{0}*$)", kSpace, kUnit));
  auto found = unit.find(text, end);
  if (!found) {
    text = text.substr(0, begin).substr(begin - std::min(begin, kLongestLabel));
    found = label.find(text);
  }
  if (!found) return {};
  return text.substr(found->group.begin, found->group.end - found->group.begin);
}

std::string expanded(const ResultSource& source) {
  std::string text = source.what;
  for (const auto& [name, group] : {std::pair(kNumber, kNumberGroup), {kGrouped, kGroupedGroup}}) {
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      text.replace(at, name.size(), group);
    }
  }
  return text;
}

[[noreturn]] void refuse_pattern(const ResultSource& source, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("\"{}\" {}", source.what, what), source.where,
              "write \"throughput: {number}\"");
}

Pattern compile(const ResultSource& source) {
  try {
    return Pattern(expanded(source), Pattern::Text::utf8);
  } catch (const std::invalid_argument& fault) {
    refuse_pattern(source, fmt::format("is not a regular expression: {}", fault.what()));
  }
}

constexpr std::size_t kMostKept = 50'000'000, kShownPlaces = 3, kShownText = 60;
constexpr double kLeastAmount = 1e-290;  // a rate of less is not a number in a record
constexpr double kMostCounted = 9e15;    // what a double counts exactly

std::string describe_source(const ResultSource& source) {
  const char* kinds[] = {"line", "json", "json_line", "csv", "key", "events"};
  return fmt::format("{} \"{}\"", kinds[static_cast<std::size_t>(source.from)], source.what);
}

}  // namespace

std::size_t end_of_number(std::string_view line, std::size_t begin, std::size_t at,
                          bool commas_group) {
  std::size_t end = end_of_digits(line, at);
  while (const std::size_t joint = joint_at(line, end, commas_group)) {
    end = end_of_digits(line, end + joint);
  }
  return end_of_multiplier(line, begin, end);
}

std::size_t begin_of_number(std::string_view line, std::size_t at, std::size_t end,
                            bool commas_group) {
  if (end <= at) return at;
  const auto before_digits = [&](std::size_t place) {
    while (place > 0 && is_digit_at(line, place - 1)) --place;
    return place;
  };
  std::size_t begin = at;
  if (is_digit_at(line, at)) begin = before_digits(at);
  // The sign of "1e-5" may be in the group.
  std::size_t origin = is_digit_at(line, at) ? begin : at + 1;
  for (;;) {
    constexpr std::size_t kLongestJoint = 12;  // a colour
    std::size_t joined = 0;
    for (std::size_t length = 1; length <= std::min(origin, kLongestJoint); ++length) {
      const bool behind_digit = origin > length && is_digit_at(line, origin - length - 1);
      if (behind_digit && joint_at(line, origin - length, commas_group) == length) joined = length;
    }
    if (joined == 0) break;
    begin = origin = before_digits(origin - joined);
  }
  if (begin == 0 || !is_digit_at(line, begin)) return begin;
  constexpr std::size_t kLongestHex = 16;
  thread_local const Pattern hex("(?<![0-9])(0)[xX][0-9a-fA-F]+$");
  const std::size_t window = begin - std::min(begin, kLongestHex);
  if (const auto found = hex.find(line.substr(0, begin + 1), window)) return found->whole.begin;
  // A sign or a point, unless it belongs to a word: "loss=-5", "= .5", not "epoch-5" or "...5".
  const auto is_alone = [&](std::size_t place) {
    return place == 0 || std::string_view(" \t=:([,;|<").find(line[place - 1]) != line.npos;
  };
  if (line[begin - 1] == '.') {
    const bool has_sign = begin > 1 && line[begin - 2] == '-';
    if (is_alone(begin - 1)) return begin - 1;
    return has_sign && is_alone(begin - 2) ? begin - 2 : begin;
  }
  for (const std::string_view sign : {"-", "\xe2\x88\x92"}) {
    const bool is_there = line.substr(0, begin).ends_with(sign);
    if (is_there && is_alone(begin - sign.size())) return begin - sign.size();
  }
  return begin;
}

std::optional<double> read_number(std::string_view text, bool commas_group) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string digits(text);
  if (commas_group) std::erase(digits, ',');
  return to_real(digits);
}

ResultPattern::ResultPattern(const ResultSource& source)
    : pattern_(compile(source)), commas_group_(source.what.find(kGrouped) != source.what.npos) {
  if (pattern_.groups() != 1) {
    refuse_pattern(
        source, fmt::format("has {} groups, and needs one around the number", pattern_.groups()));
  }
}

// Whether the group would be another, or none, if the line lacked what stands in [begin, end).
bool ResultPattern::insists_on(std::string_view line, std::size_t from, Pattern::Span group,
                               std::size_t begin, std::size_t end) {
  if (begin == end) return true;
  std::string without(line.substr(0, begin));
  without += line.substr(end);
  const auto found = pattern_.find(without, std::min(from, begin));
  return !found || std::string_view(without).substr(found->group.begin,
                                                    found->group.end - found->group.begin) !=
                       line.substr(group.begin, group.end - group.begin);
}

std::optional<PatternMatch> ResultPattern::next(std::string_view line, std::size_t from) {
  const auto found = pattern_.find(line, from);
  if (!found) return std::nullopt;
  const Pattern::Span group = found->group;
  PatternMatch match;
  match.group = line.substr(group.begin, group.end - group.begin);
  match.end = std::max(found->whole.end, found->whole.begin + 1);
  const std::string_view number = trim(match.group);
  if (number.empty() || !read_number(number, commas_group_)) return match;
  const auto first = static_cast<std::size_t>(number.data() - line.data());
  const std::size_t last = first + number.size();
  const std::size_t begin = std::max(begin_of_number(line, first, last, commas_group_), from);
  const std::size_t end = end_of_number(line, first, last, commas_group_);
  const bool is_cut =
      !insists_on(line, from, group, begin, first) || !insists_on(line, from, group, last, end);
  if (is_cut) match.whole = line.substr(begin, end - begin);
  match.unit = unit_at(line, first, last);
  return match;
}

std::string cut_text(std::string_view text) {
  return std::string(text.substr(0, kShownText)) + (text.size() > kShownText ? ".." : "");
}

ResultNumbers::ResultNumbers(const ResultSource& source)
    : source_(source), name_(*std::ranges::find(result_names(), source.name, &ResultName::name)) {}

void ResultNumbers::fail(const std::string& what, const std::string& fix) const {
  throw Error(ErrorKind::input, fmt::format("result {} {}", source_.name, what),
              describe_source(source_), fix);
}

double ResultNumbers::checked(std::string_view text,
                              const std::function<std::string()>& place) const {
  std::string_view plain = trim(text);
  if (plain.starts_with('+')) plain.remove_prefix(1);
  const std::string shown = cut_text(trim(text));
  const auto number = read_number(trim(text), source_.what.find(kGrouped) != std::string::npos);
  if (!number) {
    const std::string lower = to_lower(text);
    const bool infinite = lower.find("nan") != lower.npos || lower.find("inf") != lower.npos;
    const bool separated = plain.find_first_of(",'_") != plain.npos;
    fail(fmt::format("is \"{}\" ({}), {}", shown, place(),
                     infinite ? "which is not finite" : "which is not a number"),
         separated ? "print it as 1234.5" : "see the run's log");
  }
  const bool is_amount = source_.name != "test_accuracy" && source_.name != "train_loss";
  if (is_amount && *number <= 0) {
    fail(fmt::format("is {} ({}), and must be above 0", shown, place()), "see the run's log");
  }
  const double scaled = *number * source_.scale;
  if (!std::isfinite(scaled) || (is_amount && scaled < kLeastAmount)) {
    fail(fmt::format("is {} ({}), times scale {:g}, which no record can hold", shown, place(),
                     source_.scale),
         "see the run's log");
  }
  if (source_.name == "parameter_count" && scaled > kMostCounted) {
    fail(fmt::format("is {} ({}), more than can be counted", shown, place()), "see the run's log");
  }
  if (source_.name == "test_accuracy" && (scaled < 0 || scaled > 1)) {
    fail(fmt::format("is {} ({}), and must be from 0 to 1", shown, place()),
         "of percent, add \"scale\": 0.01");
  }
  return scaled;
}

void ResultNumbers::add(std::string_view text, const std::function<std::string()>& place) {
  if (is_word()) return add_word(text, place());
  const double number = checked(text, place);
  if (count_ == 0) first_ = least_ = most_ = number;
  last_ = number;
  sum_ += number;
  least_ = std::min(least_, number);
  most_ = std::max(most_, number);
  if (++count_ <= kShownPlaces) places_.push_back(place());
  if (!name_.is_list && source_.pick != Pick::median) return;
  if (all_.size() == kMostKept) {
    fail(fmt::format("has more than {} numbers, too many to keep", kMostKept),
         "print fewer, or pick first, last, mean, min or max");
  }
  all_.push_back(number);
}

void ResultNumbers::add_word(std::string_view text, const std::string& place) {
  const std::string word = to_lower(trim(text));
  const std::vector<std::string> known = split(name_.words, '|');
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    fail(fmt::format("is \"{}\" ({})", cut_text(word), place), "known: " + join(known, ", "));
  }
  if (++count_ <= kShownPlaces) places_.push_back(place);
  if (count_ == 1) word_ = word;
  // Printed by each rank, perhaps, but the same.
  if (word != word_) {
    places_.push_back(place);
    fail(fmt::format("was found with different values ({})", first_places()), "see the run's log");
  }
}

std::string ResultNumbers::first_places() const {
  return join(each_once(places_), ", ") + (count_ > kShownPlaces ? ", ..." : "");
}

double ResultNumbers::picked() const {
  switch (source_.pick) {
    case Pick::only:
    case Pick::first:
      return first_;
    case Pick::last:
      return last_;
    case Pick::mean:
      return sum_ / static_cast<double>(count_);
    case Pick::least:
      return least_;
    case Pick::most:
      return most_;
    case Pick::median:
      break;
  }
  std::vector<double> sorted = all_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::vector<double> ResultNumbers::numbers() const {
  if (count_ == 0) {
    fail(source_.file.empty() ? "was not printed" : "is not in " + source_.file,
         "see the run's log");
  }
  if (name_.is_list) return all_;
  if (count_ > 1 && source_.pick == Pick::only) {
    fail(fmt::format("was found {} times ({})", count_, first_places()),
         "add \"pick\": \"last\", or first, mean, median, min, max");
  }
  return {picked()};
}

std::string ResultNumbers::word() const {
  if (count_ == 0) numbers();  // throws
  return word_;
}

}  // namespace paceline
