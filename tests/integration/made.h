// What tables of backends and devices make, by name.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device/device.h"

namespace paceline {

template <typename Table>
auto find_maker(const Table& table, const std::string& name) {
  for (const auto& row : table) {
    if (name == row.name) return row.make;
  }
  throw std::runtime_error(name + " is not built here");
}

inline std::unique_ptr<Device> make_device(const std::string& name, const std::string& precision) {
  DeviceOptions options;
  options.precision = precision;
  return find_maker(device_table(), name)(options);
}

// 32 bits from a place in a stream: MurmurHash3's finalizer.
inline std::uint32_t random_bits(std::size_t place, std::uint64_t stream) {
  auto h = static_cast<std::uint32_t>(place * 0x9E3779B1U + stream * 0x85EBCA77U);
  h = (h ^ (h >> 16)) * 0x85EBCA6BU;
  h = (h ^ (h >> 13)) * 0xC2B2AE35U;
  return h ^ (h >> 16);
}

}  // namespace paceline
