#include "engine/core/random.h"

#include <cmath>
#include <numbers>

namespace paceline {

PhiloxKey philox_key(std::uint64_t seed, Stream stream) {
  // One Philox step mixes seed and stream, so that near seeds give unrelated keys.
  const PhiloxCounter mixed =
      philox({static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
              static_cast<std::uint32_t>(stream), 0},
             {0x70616365, 0x6c696e65});
  return {mixed[0], mixed[1]};
}

RandomSequence::RandomSequence(std::uint64_t seed, Stream stream, std::uint32_t index,
                               std::uint32_t sub)
    : key_(philox_key(seed, stream)), counter_{0, 0, index, sub} {}

std::uint32_t RandomSequence::next() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint32_t RandomSequence::below(std::uint32_t bound) {
  // Lemire's method with rejection.
  std::uint64_t product = std::uint64_t{next()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t floor = (0U - bound) % bound;
    while (static_cast<std::uint32_t>(product) < floor) product = std::uint64_t{next()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

double RandomSequence::uniform() {
  const std::uint64_t high = next() >> 5, low = next() >> 6;
  return static_cast<double>((high << 26) | low) / 9007199254740992.0;
}

double RandomSequence::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace paceline
