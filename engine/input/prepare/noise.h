// Smooth noise for generated images: random values on a lattice, interpolated (value noise).
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// A noise field with values between 0 and 1 and features of about `cell` pixels. A pure function of
// the seed.
class NoiseField {
 public:
  NoiseField(std::uint32_t seed, int width, int cell);

  // Row y, with `width` values.
  const std::vector<float>& row(int y);

 private:
  std::uint32_t seed_;
  int cell_;
  std::vector<int> left_;       // lattice column left of each pixel
  std::vector<float> towards_;  // smoothed distance from it
  std::vector<float> lattice_, row_;
};

// A 32-bit hash of three numbers.
std::uint32_t mixed_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c);

// On [0, 1).
inline float mixed_unit(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return static_cast<float>(mixed_bits(a, b, c) >> 8) * (1.0F / 16777216.0F);
}

}  // namespace paceline
