#include "engine/core/hash.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// XXH3_64bits of the empty input, from the algorithm's own test vectors.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hash_hex(""), "2d06800538d394c2");
}

TEST(Hash, PiecesGiveTheHashOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  Hash hash;
  for (std::size_t at = 0; at < text.size(); at += 7)
    hash.add(std::string_view(text).substr(at, 7));
  EXPECT_EQ(hash.hex(), hash_hex(text));
  EXPECT_EQ(hash.value(), hash_value(text));
  text[500] ^= 1;
  EXPECT_NE(hash.hex(), hash_hex(text));
}

TEST(Hash, HexHasSixteenDigits) {
  EXPECT_EQ(to_hex(0x1f), "000000000000001f");
  EXPECT_EQ(to_hex(~0ULL), "ffffffffffffffff");
}

}  // namespace
}  // namespace paceline
