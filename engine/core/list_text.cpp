#include "engine/core/list_text.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostListed = 8;

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
  if (names.size() <= kMostListed) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostListed);
  return fmt::format("{} and {} more", join(first, ", "), names.size() - kMostListed);
}

std::string numbers_text(const std::vector<int>& numbers) {
  const bool many = numbers.size() > kMostListed;
  std::vector<std::string> runs;
  for (std::size_t i = 0, last = 0; i < numbers.size(); i = last + 1) {
    for (last = i; many && last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) {
      ++last;
    }
    runs.push_back(last == i ? std::to_string(numbers[i])
                             : fmt::format("{}-{}", numbers[i], numbers[last]));
  }
  return names_text(runs);
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

}  // namespace paceline
