#include "engine/comm/communicator.h"

#include <algorithm>
#include <vector>

namespace paceline {

void sum_over_ranks(Communicator& communicator, std::span<double> values) {
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<double> all(values.size() * size);
  communicator.all_gather(values.data(), values.size_bytes(), all.data());
  std::fill(values.begin(), values.end(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) values[i % values.size()] += all[i];
}

}  // namespace paceline
