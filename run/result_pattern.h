// Regular expressions that find results in printed lines.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/pattern.h"
#include "run/number_context.h"
#include "sweeps/result_source.h"

namespace paceline {

struct PatternMatch {
  std::string_view group;  // what the group holds
  std::size_t end = 0;     // where to look for the next one
  // What stands beside a number, is not let through, and is not what the pattern insists on:
  // "kilosamples/s". Else empty.
  std::string_view beside;
};

class ResultPattern {
 public:
  // The source must outlive it. {number} in the source stands for a group that reads every number
  // whole, {grouped} for one as "1,234.5", which its commas group, {duration} for one with its unit
  // of time, as "7ms". Throws usage: not an expression, or not exactly one group.
  explicit ResultPattern(const ResultSource& source);

  // Empty: none from `from` on. Throws Error of kind internal where the library gives up, so that
  // nobody knows.
  std::optional<PatternMatch> next(std::string_view line, std::size_t from);

 private:
  bool insists_on(std::string_view line, std::size_t from, Pattern::Span group, std::size_t begin,
                  std::size_t end);

  Pattern pattern_;
  const ResultSource& source_;
  NumberContext context_;
};

// Throws usage, at `where`: not an expression.
Pattern compiled_pattern(const std::string& expression, const std::string& where);

// Of digits, a point, a sign and an exponent, and nothing else but what {grouped} and {duration} of
// the source let through: "1,234.5", and "7ms" as seconds.
std::optional<double> read_number(std::string_view text, const ResultSource& source);
// Its beginning, for a message.
std::string cut_text(std::string_view text);

// The values that were found of one result: checked one by one, and kept as far as they are needed.

class ResultNumbers {
 public:
  explicit ResultNumbers(const ResultSource& source);

  // `place` says where it stands ("line 17"). Throws input naming result and place: not a number,
  // not finite, out of the result's range, one too many to keep.
  void add(std::string_view text, const std::function<std::string()>& place);
  bool is_word() const { return !name_.words.empty(); }

  // A list's numbers, or the picked one. Throws input: none, or several and no pick.
  std::vector<double> numbers() const;
  // Of lists, medians, and the size of a step, which may grow: all of them, in their order.
  const std::vector<double>& all() const { return all_; }
  std::string word() const;  // of a result that is one
  std::size_t left_out = 0;  // lines that may hold more of them

  [[noreturn]] void fail(const std::string& what, const std::string& fix) const;

 private:
  void add_word(std::string_view text, const std::string& place);
  double checked(std::string_view text, const std::function<std::string()>& place) const;
  double picked() const;
  std::string first_places() const;

  const ResultSource& source_;
  const ResultName& name_;
  std::size_t count_ = 0;
  double first_ = 0, last_ = 0, sum_ = 0, least_ = 0, most_ = 0;
  std::vector<double> all_;  // only of lists and medians
  std::string word_;
  std::vector<std::string> places_;  // the first ones
};

}  // namespace paceline
