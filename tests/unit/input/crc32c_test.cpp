#include <gtest/gtest.h>

#include <string>

#include "engine/input/formats/tfrecord.h"

namespace paceline {
namespace {

std::span<const std::byte> make_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// RFC 3720, B.4, and the "123456789" of the CRC catalogues.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(make_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(make_bytes(std::string(32, '\0'))), 0x8A9136AAU);
  EXPECT_EQ(crc32c(make_bytes(std::string(32, '\xff'))), 0x62A8AB43U);
}

TEST(Crc32c, InstructionAndTablesAgreeForEveryLength) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(make_bytes(text)), crc32c_by_table(make_bytes(text))) << text.size();
    text += static_cast<char>(i * 37 + 11);
  }
}

// The header of a record of 24 bytes in a TensorBoard event file: its length and that one's CRC.
TEST(Crc32c, MaskedFormOfARealHeader) {
  const std::string length = {24, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(masked_crc32c(make_bytes(length)), 0x224B7FA3U);
}

}  // namespace
}  // namespace paceline
