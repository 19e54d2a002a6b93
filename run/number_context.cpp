#include "run/number_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "engine/core/pattern.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

enum class Meaning { time, rate, count, share };

Meaning find_meaning(const ResultSource& source) {
  if (!source.better.empty()) return Meaning::count;
  const std::string_view name = result_name(source).name;
  if (name.ends_with("_per_second")) return Meaning::rate;
  if (name.ends_with("_seconds")) return Meaning::time;
  return name == "test_accuracy" || name == "train_loss" ? Meaning::share : Meaning::count;
}

// Also the no-break and the thin ones.
constexpr char kBlank[] = R"((?:[ \t]|\xc2?\xa0|\xe2\x80[\x80-\x8a\xaf]))";
constexpr char kSeconds[] = "(?:seconds?|secs?|s)";
// What a rate or an amount may count, by the result's unit.
constexpr char kTokens[] = "tokens?|toks?";
constexpr char kSteps[] = "iterations?|iters?|its?|steps?|batch(?:es)?|updates?";
constexpr char kSamples[] =
    "samples?|examples?|images?|imgs?|pictures?|frames?|sequences?|seqs?|sentences?|records?|rows?|"
    "items?|instances?|inputs?|pairs?|clips?|videos?|words?|graphs?|molecules?|documents?|docs?|"
    "points?|requests?|req|queries|infer(?:ences?)?|episodes?";
constexpr char kParameters[] = "parameters?|params?|weights?";

std::string counted_words(const ResultSource& source) {
  const std::string_view unit = unit_counted(source);
  if (!source.better.empty()) return "\\Q" + source.unit + "\\E";
  if (unit == "tokens") return kTokens;
  if (unit == "steps" || source.name == "steps") return kSteps;
  if (unit == "images") return "images?|imgs?|pictures?|frames?|samples?";
  if (source.name == "parameter_count") return kParameters;
  return fmt::format("{}|{}|{}|{}", kSamples, kSteps, kTokens, unit.empty() ? "(?!)" : unit);
}

// A unit that leaves the number what it is.
std::string own_unit(const ResultSource& source) {
  switch (find_meaning(source)) {
    case Meaning::share:
      return "(?!)";
    case Meaning::count:
      return fmt::format("(?:{})", counted_words(source));
    case Meaning::rate:
      return fmt::format("(?:(?:{0})(?:(?:{1}*+/{1}*+|{1}++per{1}++|p){2}{3})?|[fistq]ps|hz)",
                         counted_words(source), kBlank, kSeconds,
                         source.per_replica ? "(?:/(?:gpu|device|rank|replica|worker))?" : "");
    case Meaning::time:
      break;
  }
  const char* of = source.name == "step_seconds"    ? "(?:/(?:it(?:er)?|step|batch))?"
                   : source.name == "epoch_seconds" ? "(?:/epoch)?"
                                                    : "";
  return std::string(kSeconds) + of;
}

// Where a text that follows a number ends the number; nothing of it can change what it means.
std::string ending() {
  return fmt::format(
      R"((?:\s*+$|{0}*+(?:[;|\]}})>"`]|'(?![0-9])|,(?![0-9])|\.++(?![0-9#A-Za-z])|/{0}*+[0-9]|\xe2\x94\x82)"
      R"(|(?:\xc2\xb7|\xe2\x80[\x93\x94\xa2\xa6])(?![0-9])))"
      R"(|{0}*+[\[(]{0}*+(?:[-+~]?[0-9.]|\xc2?\xb1|[A-Za-z_]\w*+ *[=:])"
      R"(|(?:best|avg|average|mean|median|min|max|total|peak|last|now|std)\b))"
      R"(|{0}++--?{0})"
      R"(|{0}++(?:of|in|at|on|for|with|using|over|from|and|after|each|total|mean|avg|average|median)"
      R"(|max|best|now|elapsed|overall)(?![A-Za-z]))"
      R"(|{0}++[A-Za-z_][A-Za-z0-9_./]*+ ?[=:]))",
      kBlank);
}

std::string behind_expression(const ResultSource& source) {
  // Seconds are followed by no smaller part of the same time: "6 s 300 ms".
  const std::string rest =
      find_meaning(source) == Meaning::time
          ? fmt::format(
                R"((?!,?{0}*+[0-9.]++{0}*+[A-Za-z\x80-\xff]++(?![A-Za-z/]))(?!{0}*+(?:per\b|\xc3\x97)))",
                kBlank)
          : fmt::format(R"((?!{0}*+(?:per\b|/|[x*]{0}|\xc3\x97)))", kBlank);
  std::string more;
  if (find_meaning(source) == Meaning::share)
    more += fmt::format(R"(|{0}++[A-Za-z]|{0}*+[\[(])", kBlank);
  if (source.has_scale) more += fmt::format(R"(|{}*+[A-Za-z%/\x80-\xff]++(?![0-9]))", kBlank);
  return fmt::format(
      R"((?i)\G(?:{0}*+(?:\xc2?\xb1|\+/?-){0}*+[0-9.]++)?+)"
      R"((?:{1}|{0}*+[\[(]?{0}*+{2}(?:{0}*+[\])])?+(?![A-Za-z0-9/*^]){3}|[ \t]++[-+]?\.?[0-9]{4}))",
      kBlank, ending(), own_unit(source), rest, more);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// "1,234", "1,234,567.8", "12,34,567", "1.234,5" and "12,5" are numbers, "1,2,3" and "0.5,0.25" are
// lists.
bool joins_by_comma(std::string_view text, std::size_t comma) {
  constexpr std::size_t kLongest = 40;
  thread_local const Pattern number(
      R"(^(?:[0-9]*(?:,[0-9]{3}(?:\.[0-9.]*)?)+|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?)"
      R"(|[0-9]*,[0-9]*|[0-9.]*\.[0-9]{3},[0-9]*)$)");
  const auto is_part = [&](std::size_t at) {
    return is_digit(text[at]) || text[at] == ',' || text[at] == '.';
  };
  std::size_t begin = comma, end = comma + 1;
  while (begin > 0 && is_part(begin - 1)) {
    if (comma - --begin > kLongest) return false;
  }
  while (end < text.size() && is_part(end) &&
         (is_digit(text[end]) || (end + 1 < text.size() && is_digit(text[end + 1])))) {
    if (++end - comma > kLongest) return false;
  }
  return number.find(text.substr(begin, end - begin)).has_value();
}

// "12 345": a blank before three digits groups them, as far as anybody can tell.
bool blank_groups(std::string_view before, std::string_view behind) {
  thread_local const Pattern first("(?<![0-9.,])[0-9]{1,3}$");
  thread_local const Pattern next(R"(^ [0-9]{3}(?![0-9]))");
  const std::size_t window = before.size() - std::min<std::size_t>(before.size(), 5);
  return first.find(before, window).has_value() && next.find(behind).has_value();
}

// The word that a text begins with, behind a blank too: for messages, and to ask whether the
// expression insists on it.
std::size_t end_of_word(std::string_view line, std::size_t at) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  while (at < line.size() && line[at] != ' ' && line[at] != '\t') ++at;
  return at;
}

std::size_t begin_of_word(std::string_view line, std::size_t at) {
  while (at > 0 && (line[at - 1] == ' ' || line[at - 1] == '\t')) --at;
  while (at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t') --at;
  return at;
}

// Words for other times than seconds, and for multiples.
bool is_other_unit(std::string_view word, bool may_be_minimum) {
  thread_local const Pattern other(
      R"((?i)^(?:(?:milli|micro|nano)(?:s|secs?|seconds?)?|(?:[mnu]|\xc2?\xb5|\xce\xbc)(?:s(?:ecs?)?|seconds?))"
      R"(|mins|minutes?|hrs?|hours?|days?|weeks?|cycles|ticks|kilo.*|mega.*|millions?|thousands?)$)");
  thread_local const Pattern ambiguous("(?i)^(?:min|[mhdk])$");
  return other.find(word).has_value() || (!may_be_minimum && ambiguous.find(word).has_value());
}

// "elapsedMs", "time_ms", "Zeit in ms": its words, and whether one is a unit that the result does
// not have.
std::string other_unit_in_label(std::string_view label) {
  std::vector<std::string> words(1);
  const auto is_part = [](char c) { return is_letter(c) || static_cast<unsigned char>(c) >= 0x80; };
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool begins = i > 0 && std::islower(static_cast<unsigned char>(label[i - 1])) != 0 &&
                        std::isupper(static_cast<unsigned char>(label[i])) != 0;
    if ((!is_part(label[i]) || begins) && !words.back().empty()) words.emplace_back();
    if (is_part(label[i])) words.back() += label[i];
  }
  std::erase(words, "");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_last = i + 1 == words.size(), behind_per = i > 0 && words[i - 1] == "per";
    if (is_other_unit(words[i], !(is_last && words.size() > 1) && !behind_per)) return words[i];
  }
  return "";
}

}  // namespace

NumberContext::NumberContext(const ResultSource& source, bool commas_group)
    : source_(source), commas_group_(commas_group), behind_(behind_expression(source)) {}

// Of a rate: of minutes, or the other way round ("ms/img", "s/it"). Of a time: not of seconds.
bool NumberContext::has_unit_of_another(std::string_view behind) const {
  thread_local const Pattern word(fmt::format(
      R"((?i)\G{0}*+((?:[\[(]{0}*+)?(?:%|[a-z\xb5\xc2\xce\xbc]++(?:(?:/|{0}per{0})[a-z]++)?)\)?))",
      kBlank));
  const auto found = word.find(behind);
  if (!found) return false;
  std::string text =
      to_lower(behind.substr(found->group.begin, found->group.end - found->group.begin));
  // "(min)" is a minimum, and "(d = 3)" no days.
  const bool in_brackets = text.starts_with('('), is_closed = text.ends_with(')');
  if (is_closed) text.pop_back();
  while (text.starts_with('(') || text.starts_with('[') || text.starts_with(' ')) text.erase(0, 1);
  const bool may_be_label = in_brackets && (!is_closed || text == "min");
  if (text == "%") return source_.name == "test_accuracy";
  const std::size_t slash = std::min(text.find('/'), text.find(" per "));
  const std::string first = text.substr(0, slash);
  const std::string second =
      slash == text.npos ? "" : text.substr(slash + (text[slash] == '/' ? 1 : 5));
  if (find_meaning(source_) == Meaning::time) return is_other_unit(first, may_be_label);
  if (find_meaning(source_) != Meaning::rate) return false;
  const bool is_time = is_other_unit(first, false) || first == "s" || first.starts_with("sec");
  return (!second.empty() && is_time) || is_other_unit(second, false);
}

namespace {

// What may name the number that begins at `at`: back to another number or a separator, without what
// is that number's own ("16 MFU").
std::string_view label_before(std::string_view line, std::size_t at) {
  constexpr std::size_t kLongest = 48;
  std::size_t begin = at;
  while (begin > 0 && at - begin < kLongest && !is_digit(line[begin - 1]) &&
         std::string_view(",;|").find(line[begin - 1]) == std::string_view::npos) {
    --begin;
  }
  const std::string_view label = line.substr(begin, at - begin);
  if (begin == 0 || !is_digit(line[begin - 1])) return label;
  const std::string_view others = label.substr(std::min(label.find(' '), label.size()));
  return trim(others).empty() ? label : others;
}

bool is_let_through_before(std::string_view line, std::size_t begin, std::size_t end) {
  if (begin == 0) return true;
  const char last = line[begin - 1];
  const char second = begin > 1 ? line[begin - 2] : ' ', third = begin > 2 ? line[begin - 3] : ' ';
  const auto is_one_of = [](char c, std::string_view all) { return all.find(c) != all.npos; };
  if (last == ' ') {
    return !blank_groups(line.substr(0, begin - 1), line.substr(begin - 1, end - begin + 1));
  }
  if (last == ',') return !is_digit(second) || !joins_by_comma(line, begin - 1);
  // "loading...100", not "1.5", ".5" and "3:20".
  if (last == '.' && is_one_of(second, " \t=:([,;|<")) return false;
  if (is_one_of(last, ".':_")) return !is_digit(second);
  // "epoch-12", not "-12" and "2e-12".
  if (is_one_of(last, "-+"))
    return is_letter(second) && !(is_one_of(second, "eEdD") && is_digit(third));
  if (is_one_of(last, "\t=([{;|<>\"/@~#*$&]})`")) return true;
  const std::initializer_list<std::string_view> marks = {
      "\xe2\x94\x82", "\xe2\x89\x88", "\xe2\x80\xa2", "\xe2\x80\xa6", "\xe2\x80\x94"};
  return std::ranges::any_of(
      marks, [&](std::string_view mark) { return line.substr(0, begin).ends_with(mark); });
}

}  // namespace

std::optional<Beside> NumberContext::behind(std::string_view line, std::size_t begin,
                                            std::size_t end) const {
  const std::string_view behind = line.substr(end);
  if (!source_.has_scale && has_unit_of_another(behind)) {
    return Beside{end, end_of_word(line, end), true};
  }
  const bool begins_list = behind.starts_with(',') && behind.size() > 1 && is_digit(behind[1]);
  const bool joins = begins_list ? commas_group_ || joins_by_comma(line, end)
                                 : blank_groups(line.substr(begin, end - begin), behind);
  if (!joins && (begins_list || behind_.find(line, end).has_value())) return std::nullopt;
  return Beside{end, end_of_word(line, end), false};
}

std::optional<Beside> NumberContext::before(std::string_view line, std::size_t begin,
                                            std::size_t end) const {
  const Beside foreign{begin_of_word(line, begin), begin, false};
  const Meaning meaning = find_meaning(source_);
  if (!source_.has_scale && (meaning == Meaning::time || meaning == Meaning::rate)) {
    const std::string_view text = label_before(line, begin);
    if (!other_unit_in_label(text).empty()) return Beside{begin_of_word(line, begin), begin, true};
  }
  return is_let_through_before(line, begin, end) ? std::nullopt : std::optional(foreign);
}

std::string foreign_in_name(const ResultSource& source) {
  const Meaning meaning = find_meaning(source);
  if (source.has_scale || source.from == ResultFrom::line || meaning == Meaning::share) return "";
  return other_unit_in_label(source.what);
}

std::string shown_line(std::string_view line, bool& hidden) {
  thread_local const Pattern colour(R"(\x1b\[[0-9;:]*m)");
  thread_local const Pattern at_ends(
      R"(^(?:\x1b\[[0-9]*[A-K]|\x08)+|(?:\x1b\[[0-9]*[A-K]|\x08)+$)");
  std::string shown(line);
  if (line.find_first_of("\x1b\b") != line.npos)
    shown = at_ends.replace(colour.replace(line, ""), "");
  hidden = std::ranges::any_of(shown, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
  return shown;
}

}  // namespace paceline
