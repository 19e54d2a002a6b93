// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, RFC 3720), by the processor's instruction where it
// has one, and the masked form that TFRecord files hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

std::uint32_t crc32c(std::span<const std::byte> bytes);

// Rotated and offset, so that the CRC of data that hold CRCs is no trivial one (TensorFlow's
// tensorflow/core/lib/hash/crc32c.h).
constexpr std::uint32_t mask_crc(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return mask_crc(crc32c(bytes));
}

// The same from tables alone, for machines without the instruction and for tests.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace paceline
