#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(ForeignText, AnotherEncodingIsNamedWithItsLine) {
  require_utf8("a\nGr\u00f6\u00dfe\n", "t");
  expect_error(ErrorKind::input, {"t:2: the text is not UTF-8 (byte 0xF6)"},
               [] { require_utf8("a\nGr\xf6\n", "t"); });
  EXPECT_THROW(require_utf8(std::string_view("a\0b\0", 4), "t"), Error);
}

TEST(ForeignText, JsonIsNoDeeperThanADocument) {
  EXPECT_EQ(parse_json(R"({"a": "[[[\"[", "b": [[1]]})")["b"][0][0], 1);
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']')).is_discarded());
  EXPECT_TRUE(parse_json(std::string(101, '[') + std::string(101, ']')).is_discarded());
  EXPECT_TRUE(parse_json(std::string(30 << 20, '[')).is_discarded());
  EXPECT_TRUE(parse_json("[1,").is_discarded());
}

}  // namespace
}  // namespace paceline
