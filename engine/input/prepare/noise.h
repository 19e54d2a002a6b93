// Smooth noise for made images: random values on a lattice, interpolated (value noise).
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// A field over the plane, between 0 and 1, whose features are about `cell` pixels wide. A pure
// function of the seed.
class NoiseField {
 public:
  NoiseField(std::uint32_t seed, int width, int cell);

  // The values of row y, `width` of them.
  const std::vector<float>& row(int y);

 private:
  std::uint32_t seed_;
  int cell_;
  std::vector<int> left_;       // lattice column left of each pixel
  std::vector<float> towards_;  // how far to the right one, smoothed
  std::vector<float> lattice_, row_;
};

// 32 well mixed bits of three numbers.
std::uint32_t mixed_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c);

// On [0, 1).
inline float mixed_unit(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return static_cast<float>(mixed_bits(a, b, c) >> 8) * (1.0F / 16777216.0F);
}

}  // namespace paceline
