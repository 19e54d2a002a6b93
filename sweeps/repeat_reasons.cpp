#include "sweeps/repeat_reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"

namespace paceline {

namespace {

struct SameReason {
  std::string before, after;  // the elements' numbers
  std::vector<int> repeats;
  std::vector<std::string> elements;
};

// "1, 2, 4 to 9"
std::string format_list(const std::vector<int>& numbers) {
  constexpr std::size_t kFewest = 4;  // of a range
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i >= kFewest) {
      parts.push_back(fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    } else {
      for (std::size_t k = i; k < end; ++k) parts.push_back(std::to_string(numbers[k]));
    }
    i = end;
  }
  return join(parts, ", ");
}

// "12_3, 12_5, 12_7 and 4 more"
std::string format_list(std::vector<std::string> elements) {
  constexpr std::size_t kMost = 4;
  const std::size_t more = elements.size() > kMost ? elements.size() - kMost + 1 : 0;
  elements.resize(elements.size() - more);
  return join(elements, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::string to_text(std::vector<RepeatReason> reasons, std::string_view colon) {
  std::stable_sort(
      reasons.begin(), reasons.end(),
      [](const RepeatReason& a, const RepeatReason& b) { return a.repeat < b.repeat; });
  std::vector<SameReason> groups;
  for (const RepeatReason& each : reasons) {
    const auto at = each.element.empty() ? std::string::npos : each.why.find(each.element);
    const bool has_number = at != std::string::npos;
    const std::string before = each.why.substr(0, at),
                      after = has_number ? each.why.substr(at + each.element.size()) : "";
    auto group = std::find_if(groups.begin(), groups.end(), [&](const SameReason& known) {
      return known.before == before && known.after == after && known.elements.empty() != has_number;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {before, after, {}, {}});
    group->repeats.push_back(each.repeat);
    if (has_number) group->elements.push_back(each.element);
  }
  std::vector<std::string> texts;
  for (const SameReason& group : groups) {
    texts.push_back(fmt::format("repeat{} {}{}{}{}{}", group.repeats.size() == 1 ? "" : "s",
                                format_list(group.repeats), colon, group.before,
                                format_list(group.elements), group.after));
  }
  return join(texts, "; ");
}

}  // namespace paceline
