#include "engine/input/formats/crc32c.h"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace paceline {

namespace {

constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
constexpr std::size_t kWord = 8;

using Tables = std::array<std::array<std::uint32_t, 256>, kWord>;

// tables[k][b]: what byte b does to the CRC when k more bytes follow it ("slicing by eight").
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReversedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kWord; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t word_at(const std::byte* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, kWord);
  return word;
}

#if defined(__x86_64__)
#define PACELINE_WITH_CRC [[gnu::target("sse4.2")]]
bool has_instruction() {
  return __builtin_cpu_supports("sse4.2");
}
PACELINE_WITH_CRC std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
PACELINE_WITH_CRC std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
#elif defined(__aarch64__)
#define PACELINE_WITH_CRC [[gnu::target("+crc")]]
bool has_instruction() {
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
PACELINE_WITH_CRC std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
PACELINE_WITH_CRC std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return __crc32cb(crc, byte);
}
#endif

#if defined(PACELINE_WITH_CRC)
PACELINE_WITH_CRC std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) crc = add_word(crc, word_at(&bytes[at]));
  auto rest = static_cast<std::uint32_t>(crc);
  for (; at < bytes.size(); ++at) rest = add_byte(rest, std::to_integer<std::uint8_t>(bytes[at]));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) {
    std::uint64_t word = word_at(&bytes[at]) ^ crc;  // little-endian, as our machines are
    crc = 0;
    for (std::size_t k = kWord; k-- > 0; word >>= 8) crc ^= kTables[k][word & 255];
  }
  for (; at < bytes.size(); ++at) {
    crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 255];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(PACELINE_WITH_CRC)
  if (has_instruction()) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

}  // namespace paceline
