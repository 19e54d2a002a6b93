// Counter-based random numbers: a pure function of (key, counter), so that results do not depend on
// threads, ranks or the order of calls.
//
// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC11 (the generator of cuRAND and of several frameworks).
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

struct PhiloxKey {
  std::uint32_t low = 0, high = 0;
};

using PhiloxCounter = std::array<std::uint32_t, 4>;

inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key.low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key.high, static_cast<std::uint32_t>(a)};
    key.low += 0x9E3779B9;
    key.high += 0xBB67AE85;
  }
  return counter;
}

// The purpose of a random stream. Streams of the same seed never overlap.
enum class Stream : std::uint32_t {
  weights = 1,
  order = 2,
  dropout = 3,
  synthetic = 4,
  augment = 5
};

// A sequence of numbers from (seed, stream, index, sub), e.g. index = epoch.
class RandomSequence {
 public:
  RandomSequence(std::uint64_t seed, Stream stream, std::uint32_t index, std::uint32_t sub = 0);
  std::uint32_t next();
  std::uint32_t below(std::uint32_t bound);  // uniform on [0, bound), without bias
  double uniform();                          // [0, 1), 53 bits
  double normal();                           // mean 0, variance 1 (Box-Muller)

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int used_ = 4;
};

PhiloxKey philox_key(std::uint64_t seed, Stream stream);

// Dropout keeps an element if its 16 bits are at least `rate` x 65536. Eight elements share one
// Philox block: element e of a sample uses 16 bits of counter {e / 8, position, epoch, layer}.
constexpr std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(rate * 65536.0 + 0.5);
}

}  // namespace paceline
