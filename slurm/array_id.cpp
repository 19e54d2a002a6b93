#include "slurm/array_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr int kMostElements = 10'000'000;

// A whole number without sign, as ids are.
std::optional<int> to_index(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto number = to_integer(text);
  if (!number || *number > kMostElements) return std::nullopt;
  return static_cast<int>(*number);
}

// "6-8", "0-20:4", "3".
bool add_range(std::string_view text, std::vector<int>& elements) {
  const auto dash = text.find('-');
  const auto first = to_index(text.substr(0, dash));
  if (!first) return false;
  if (dash == std::string_view::npos) {
    elements.push_back(*first);
    return true;
  }
  std::string_view rest = text.substr(dash + 1);
  const auto colon = rest.find(':');
  const auto step =
      colon == std::string_view::npos ? std::optional<int>(1) : to_index(rest.substr(colon + 1));
  const auto last = to_index(rest.substr(0, colon));
  if (!last || !step || *step < 1 || *last < *first) return false;
  for (int element = *first; element <= *last; element += *step) elements.push_back(element);
  return true;
}

}  // namespace

bool parse_elements(std::string_view text, ArrayId& into) {
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    const auto throttle = to_index(text.substr(percent + 1));
    if (!throttle) return false;
    into.throttle = *throttle;
    text = text.substr(0, percent);
  }
  for (const std::string& part : split(text, ',')) {
    if (part == "...") {
      into.cut_short = true;
      continue;
    }
    std::string_view range = part;
    if (range.ends_with("...")) {
      into.cut_short = true;
      range.remove_suffix(3);
    }
    if (!add_range(range, into.elements)) return false;
  }
  return true;
}

std::optional<ArrayId> parse_array_id(std::string_view text) {
  text = trim(text);
  ArrayId id;
  const auto bar = text.find('_');
  const auto job = to_integer(text.substr(0, bar));
  if (!job || *job < 1 || text.front() == '+') return std::nullopt;
  id.job = *job;
  if (bar == std::string_view::npos) return id;
  std::string_view elements = text.substr(bar + 1);
  if (elements.starts_with('[')) {
    if (!elements.ends_with(']')) return std::nullopt;
    elements = elements.substr(1, elements.size() - 2);
  } else if (!to_index(elements)) {
    return std::nullopt;
  }
  if (!parse_elements(elements, id)) return std::nullopt;
  return id;
}

std::string elements_text(const std::vector<int>& elements) {
  std::vector<int> sorted = elements;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(sorted[i])
                              : fmt::format("{}-{}", sorted[i], sorted[last]));
    i = last + 1;
  }
  return join(parts, ",");
}

}  // namespace paceline
