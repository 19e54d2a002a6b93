#include "engine/core/plain_text.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(PlainText, OfAnyLanguageIsFine) {
  for (const char* text :
       {"", "a b", "~", "\xC2\xA0", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(fault_of_text(text), "") << text;
  }
}

TEST(PlainText, ControlCharactersAreNamed) {
  EXPECT_EQ(fault_of_text("a\nb"), "has a control character (U+000A)");
  EXPECT_EQ(fault_of_text(std::string_view("a\0b", 3)), "has a control character (U+0000)");
  EXPECT_EQ(fault_of_text("\x1B[31m"), "has a control character (U+001B)");
  EXPECT_EQ(fault_of_text("a\x7F"), "has a control character (U+007F)");
  EXPECT_EQ(fault_of_text("\xC2\x80"), "has a control character (U+0080)");
  EXPECT_EQ(fault_of_text("\xC2\x9F"), "has a control character (U+009F)");
}

TEST(PlainText, BytesThatAreNoUtf8) {
  // Cut short, out of place, overlong, a surrogate, too large, and no first byte at all.
  for (const char* text :
       {"\xC3", "\xE2\x82", "\xF0\x9F\x98", "\x80", "\xC3(", "\xC0\x8A", "\xE0\x80\x8A",
        "\xF0\x80\x80\x8A", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(fault_of_text(text), "is not UTF-8") << text;
  }
}

}  // namespace
}  // namespace paceline
