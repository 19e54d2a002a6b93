#include "run/result_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr char kWrite[] = "write \"throughput: {number}\"";
constexpr std::string_view kNumber = "{number}", kGrouped = "{grouped}", kDuration = "{duration}";
constexpr std::string_view kDurationGroup =
    "([0-9]+(?:\\.[0-9]+)? ?(?:[mun\xc2\xb5\xce\xbc]?s|min|h)(?! *[0-9]))";
constexpr std::string_view kGroupedGroup =
    "([0-9]{1,3}(?:,[0-9]{3})+(?:\\.[0-9]+)?|[0-9]+(?:\\.[0-9]+)?)";
// Not finite ones, too, so that they are refused instead of overlooked.
constexpr std::string_view kNumberGroup =
    "([-+]?(?:(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[nN]a[nN]|[iI]nf(?:inity)?))";

std::string expanded(const ResultSource& source) {
  std::string text = source.what;
  for (const auto& [name, group] :
       {std::pair(kNumber, kNumberGroup), {kGrouped, kGroupedGroup}, {kDuration, kDurationGroup}}) {
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      text.replace(at, name.size(), group);
    }
  }
  return text;
}

constexpr std::size_t kMostKept = 50'000'000, kShownPlaces = 3, kShownText = 60;
constexpr double kLeastAmount = 1e-290;  // a rate of less is not a number in a record
constexpr double kMostCounted = 9e15;    // what a double counts exactly

std::string describe_source(const ResultSource& source) {
  const char* kinds[] = {"line", "json", "json_line", "csv", "key", "events"};
  return fmt::format("{} \"{}\"", kinds[static_cast<std::size_t>(source.from)], source.what);
}

}  // namespace

Pattern compiled_pattern(const std::string& expression, const std::string& where) {
  try {
    return Pattern(expression, Pattern::Text::utf8);
  } catch (const std::invalid_argument& fault) {
    throw usage_error(
        fmt::format("\"{}\" is not a regular expression: {}", expression, fault.what()), where,
        kWrite);
  }
}

std::optional<double> read_number(std::string_view text, const ResultSource& source) {
  if (text.starts_with('+')) text.remove_prefix(1);
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6},
      {"ms", 1e-3}, {"s", 1},     {"min", 60},         {"h", 3600}};
  const bool has_unit = source.what.find(kDuration) != source.what.npos;
  std::string digits(has_unit ? text.substr(0, text.find_last_of("0123456789.") + 1) : text);
  const std::string_view unit = trim(text.substr(digits.size()));
  const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  if (!unit.empty() && known == std::end(kUnits)) return std::nullopt;
  if (source.what.find(kGrouped) != source.what.npos) std::erase(digits, ',');
  const auto number = to_real(digits);
  return number && !unit.empty() ? *number * known->second : number;
}

ResultPattern::ResultPattern(const ResultSource& source)
    : pattern_(compiled_pattern(expanded(source), source.where)),
      source_(source),
      context_(source, source.what.find(kGrouped) != source.what.npos) {
  if (pattern_.groups() != 1) {
    throw usage_error(fmt::format("\"{}\" has {} groups, and needs one around the number",
                                  source.what, pattern_.groups()),
                      source.where, kWrite);
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
  if (number.empty() || !read_number(number, source_)) return match;
  const auto first = static_cast<std::size_t>(number.data() - line.data());
  const std::size_t last = first + number.size();
  for (const auto& beside :
       {context_.before(line, first, last), context_.behind(line, first, last)}) {
    if (!beside) continue;
    const std::size_t begin = std::max(beside->begin, std::min(from, first));
    if (!beside->is_other_unit && insists_on(line, from, group, begin, beside->end)) continue;
    match.beside = trim(line.substr(begin, beside->end - begin));
  }
  return match;
}

std::string cut_text(std::string_view text) {
  return std::string(text.substr(0, kShownText)) + (text.size() > kShownText ? ".." : "");
}

ResultNumbers::ResultNumbers(const ResultSource& source)
    : source_(source), name_(result_name(source)) {}

void ResultNumbers::fail(const std::string& what, const std::string& fix) const {
  throw input_error(fmt::format("result {} {}", source_.name, what), describe_source(source_), fix);
}

double ResultNumbers::checked(std::string_view text,
                              const std::function<std::string()>& place) const {
  std::string_view plain = trim(text);
  if (plain.starts_with('+')) plain.remove_prefix(1);
  const std::string shown = cut_text(trim(text));
  const auto number = read_number(trim(text), source_);
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
  const bool is_of_step = source_.name == "global_batch" || source_.name == "tokens_per_step";
  if (!name_.is_list && !is_of_step && source_.pick != Pick::median) return;
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
  return median(all_);
}

std::vector<double> ResultNumbers::numbers() const {
  if (count_ == 0) {
    fail(left_out > 0           ? "was printed only where not_between leaves it out"
         : source_.file.empty() ? "was not printed"
                                : "is not in " + source_.file,
         left_out > 0 ? "let the program print it more often" : "see the run's log");
  }
  if (name_.is_list && source_.pick == Pick::only) return all_;
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
