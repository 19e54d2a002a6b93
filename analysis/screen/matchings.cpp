#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "analysis/screen/screen.h"

namespace paceline {

std::vector<Matching> draw_matchings(int count, std::uint32_t seed) {
  std::vector<Matching> matchings;
  std::set<std::pair<int, int>> drawn;
  std::mt19937 random(seed);
  std::vector<int> order(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  const int wanted = count < 2 ? 0 : static_cast<int>(std::ceil(std::log2(count)));
  constexpr int kTries = 1000;
  for (int tries = 0; static_cast<int>(matchings.size()) < wanted && tries < kTries; ++tries) {
    std::ranges::shuffle(order, random);
    Matching matching;
    for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
      matching.emplace_back(std::min(order[i], order[i + 1]), std::max(order[i], order[i + 1]));
    }
    // Of few nodes there are few matchings; of many, a pair twice is no loss.
    const bool is_new =
        std::ranges::none_of(matching, [&](const auto& pair) { return drawn.contains(pair); });
    if (!is_new && tries < kTries / 2) continue;
    if (!is_new && count <= 4) break;
    drawn.insert(matching.begin(), matching.end());
    matchings.push_back(std::move(matching));
  }
  return matchings;
}

}  // namespace paceline
