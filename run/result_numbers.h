// The values that were found of one result: checked one by one, and kept as far as they are needed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/program.h"

namespace paceline {

class ResultNumbers {
 public:
  explicit ResultNumbers(const ResultSource& source);

  // `place` says where it stands ("line 17"). Throws input naming result and place: not a number,
  // not finite, out of the result's range, one too many to keep.
  void add(std::string_view text, const std::function<std::string()>& place);
  bool is_word() const { return !name_.words.empty(); }

  // A list's numbers, or the picked one. Throws input: none, or several and no pick.
  std::vector<double> numbers() const;
  std::string word() const;  // of a result that is one

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
