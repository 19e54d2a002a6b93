#include "engine/core/utf8.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Utf8, TellsTextFromBytes) {
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

}  // namespace
}  // namespace paceline
