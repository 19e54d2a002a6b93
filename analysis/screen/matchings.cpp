#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "analysis/screen/screen.h"

namespace paceline {

// Rounds of a round-robin tournament by the circle method, which has no pair twice, of nodes in a
// drawn order. An odd number has a place that nobody takes.
std::vector<Matching> draw_matchings(int count, std::uint32_t seed) {
  if (count < 2) return {};
  std::mt19937 random(seed);
  const int places = count + count % 2, circle = places - 1;
  std::vector<int> nodes(static_cast<std::size_t>(places)),
      rounds(static_cast<std::size_t>(circle));
  std::iota(nodes.begin(), nodes.end(), 0);
  std::iota(rounds.begin(), rounds.end(), 0);
  std::ranges::shuffle(nodes, random);
  std::ranges::shuffle(rounds, random);
  rounds.resize(static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(count - 1))));
  std::vector<Matching> matchings;
  for (const int round : rounds) {
    Matching& matching = matchings.emplace_back();
    for (int i = 0; i < places / 2; ++i) {
      const int left = i == 0 ? circle : (round + i) % circle;
      const int right = (round - i + circle) % circle;
      const int a = nodes[static_cast<std::size_t>(left)];
      const int b = nodes[static_cast<std::size_t>(right)];
      if (std::max(a, b) < count) matching.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return matchings;
}

}  // namespace paceline
