#include <gtest/gtest.h>

#include "engine/core/text.h"

namespace paceline {
namespace {

TEST(Utf8, DistinguishesTextFromBytes) {
  for (const char* text : {"", "plain", "\u00b1", "\u20ac", "\U0001f680", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* bytes : {"\xff", "\x80", "a\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82 "}) {
    EXPECT_FALSE(is_utf8(bytes)) << bytes;
  }
}

TEST(Utf8, NothingPrintableSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[31m\a\r\n\tb\x7f"), "a [31m    b ");
  EXPECT_EQ(printable("a\n\tb\x1b", "\n\t"), "a\n\tb ");
  EXPECT_EQ(printable("\u009b31m \u202edlrow\u2069"), " 31m  dlrow ");
  EXPECT_EQ(printable("caf\u00e9 \u00b1 \u4e2d"), "caf\u00e9 \u00b1 \u4e2d");
  EXPECT_EQ(printable("x\xffy\xe2\x82"), "x\ufffdy\ufffd\ufffd");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a b");
}

TEST(FaultOfText, OfAnyLanguageIsFine) {
  for (const char* text :
       {"", "a b", "~", "\xC2\xA0", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(fault_of_text(text), "") << text;
  }
}

TEST(FaultOfText, ControlCharactersAreNamed) {
  EXPECT_EQ(fault_of_text("a\nb"), "has a control character (U+000A)");
  EXPECT_EQ(fault_of_text(std::string_view("a\0b", 3)), "has a control character (U+0000)");
  EXPECT_EQ(fault_of_text("\x1B[31m"), "has a control character (U+001B)");
  EXPECT_EQ(fault_of_text("a\x7F"), "has a control character (U+007F)");
  EXPECT_EQ(fault_of_text("\xC2\x80"), "has a control character (U+0080)");
  EXPECT_EQ(fault_of_text("\xC2\x9F"), "has a control character (U+009F)");
  EXPECT_EQ(fault_of_text("\uFFFF"), "has a control character (U+FFFF)") << "XML cannot hold it";
  EXPECT_EQ(printable("a\uFFFE"
                      "b\uFFFD"),
            "a b\uFFFD");
}

TEST(FaultOfText, BytesThatAreNoUtf8) {
  // Cut short, out of place, overlong, a surrogate, too large, and no first byte at all.
  for (const char* text :
       {"\xC3", "\xE2\x82", "\xF0\x9F\x98", "\x80", "\xC3(", "\xC0\x8A", "\xE0\x80\x8A",
        "\xF0\x80\x80\x8A", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(fault_of_text(text), "is not UTF-8") << text;
  }
}

}  // namespace
}  // namespace paceline
