// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, RFC 3720), with the CPU's instruction if it has one,
// and the masked form used in TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

std::uint32_t crc32c(std::span<const std::byte> bytes);

// Rotates and offsets a CRC, so that the CRC of data that contains CRCs is not trivial
// (TensorFlow's tensorflow/core/lib/hash/crc32c.h).
constexpr std::uint32_t mask_crc(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return mask_crc(crc32c(bytes));
}

// The table-driven version, for CPUs without the instruction and for tests.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace paceline
