#include "engine/input/prepare/noise.h"

namespace paceline {

namespace {

float smooth(float t) {
  return t * t * (3 - 2 * t);
}

}  // namespace

// The finaliser of MurmurHash3 (Appleby, public domain) over a sum of products with odd constants.
std::uint32_t mixed_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t h = a * 0x9E3779B1U + b * 0x85EBCA77U + c * 0xC2B2AE3DU;
  h = (h ^ h >> 16) * 0x85EBCA6BU;
  h = (h ^ h >> 13) * 0xC2B2AE35U;
  return h ^ h >> 16;
}

NoiseField::NoiseField(std::uint32_t seed, int width, int cell)
    : seed_(seed),
      cell_(cell),
      lattice_(static_cast<std::size_t>(width / cell + 2)),
      row_(static_cast<std::size_t>(width)) {
  for (int x = 0; x < width; ++x) {
    left_.push_back(x / cell);
    towards_.push_back(smooth(static_cast<float>(x % cell) / static_cast<float>(cell)));
  }
}

const std::vector<float>& NoiseField::row(int y) {
  const auto above = static_cast<std::uint32_t>(y / cell_);
  const float t = smooth(static_cast<float>(y % cell_) / static_cast<float>(cell_));
  for (std::size_t i = 0; i < lattice_.size(); ++i) {
    const auto column = static_cast<std::uint32_t>(i);
    const float a = mixed_unit(seed_, column, above), b = mixed_unit(seed_, column, above + 1);
    lattice_[i] = a + (b - a) * t;
  }
  for (std::size_t x = 0; x < row_.size(); ++x) {
    const auto left = static_cast<std::size_t>(left_[x]);
    row_[x] = lattice_[left] + (lattice_[left + 1] - lattice_[left]) * towards_[x];
  }
  return row_;
}

}  // namespace paceline
