// The seed of orders that tests choose at random: PACELINE_SEED, else always the same. Printed, so
// that a failure can be repeated.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace paceline {

inline std::uint64_t order_seed() {
  static const std::uint64_t kSeed = [] {
    const char* given = std::getenv("PACELINE_SEED");
    const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 1;
    std::fprintf(stderr, "PACELINE_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
  }();
  return kSeed;
}

}  // namespace paceline
