// What may stand around a number in a printed line, so that the line means that number.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/pattern.h"
#include "sweeps/result_source.h"

namespace paceline {

// What stands beside a number and is not let through: line[begin, end).
struct Beside {
  std::size_t begin = 0, end = 0;
  // A unit that the result does not have: it does not help that the expression names it.
  bool is_other_unit = false;
};

class NumberContext {
 public:
  // The source must outlive it. `commas_group`: a comma before a digit belongs to the number.
  NumberContext(const ResultSource& source, bool commas_group);

  // Behind a number are let through: the end, blanks, punctuation, a unit of the result, some words
  // ("of", "mean"), the next label ("loss=") and the next number, as far as they cannot belong to
  // this one. With a stated scale any one word. `begin`, `end`: the number's place.
  std::optional<Beside> behind(std::string_view line, std::size_t begin, std::size_t end) const;
  // Before it: the beginning, blanks, punctuation, and a label without another unit ("time_ms=").
  std::optional<Beside> before(std::string_view line, std::size_t begin, std::size_t end) const;

 private:
  bool has_unit_of_another(std::string_view behind) const;

  const ResultSource& source_;
  const bool commas_group_;
  Pattern behind_;
};

// "ms" of a key, path, column or tag "train_ms" of a time; empty: its name has no unit that the
// result does not have, or a scale is stated.
std::string foreign_in_name(const ResultSource& source);

// A line as a terminal shows it: without colours, and without codes at its ends that move the
// cursor or erase. Sets `hidden` if other control characters stay.
std::string shown_line(std::string_view line, bool& hidden);

}  // namespace paceline
