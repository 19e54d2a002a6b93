#include "engine/input/loading/order.h"

#include <numeric>
#include <utility>

#include "engine/core/random.h"

namespace paceline {

namespace {

void shuffle_all(std::vector<std::uint32_t>& order, RandomSequence& random) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::size_t samples,
                                       std::size_t buffer) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  RandomSequence random(seed, Stream::order, epoch);
  if (buffer == 0 || buffer >= samples) {
    shuffle_all(order, random);
    return order;
  }
  std::vector<std::uint32_t> held(order.begin(),
                                  order.begin() + static_cast<std::ptrdiff_t>(buffer));
  std::size_t next = buffer;
  for (std::uint32_t& taken : order) {
    const std::size_t place = random.below(static_cast<std::uint32_t>(held.size()));
    taken = held[place];
    if (next < samples) {
      held[place] = static_cast<std::uint32_t>(next++);
    } else {
      held[place] = held.back();
      held.pop_back();
    }
  }
  return order;
}

Slice take_slice(std::size_t count, int rank, int ranks) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
  const std::size_t begin = count * r / n;
  return {begin, count * (r + 1) / n - begin};
}

}  // namespace paceline
