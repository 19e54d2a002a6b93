#include "engine/core/pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(Pattern, FindsItsFirstGroupFromAPlaceOn) {
  const Pattern pattern("a(b*)c");
  EXPECT_EQ(pattern.groups(), 1);
  const auto first = pattern.find("xabbc ac");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->whole.begin, 1U);
  EXPECT_EQ(first->whole.end, 5U);
  EXPECT_EQ(first->group.begin, 2U);
  EXPECT_EQ(first->group.end, 4U);
  const auto second = pattern.find("xabbc ac", first->whole.end);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->whole.begin, 6U);
  EXPECT_EQ(second->group.begin, second->group.end);
  EXPECT_FALSE(pattern.find("xabbc ac", 7));
}

TEST(Pattern, MatchesTheWholeTextOnly) {
  const Pattern pattern("(a+)(-[0-9])?(b)");
  EXPECT_EQ(pattern.match("aa-1b"), (std::vector<std::string>{"aa-1b", "aa", "-1", "b"}));
  EXPECT_EQ(pattern.match("ab"), (std::vector<std::string>{"ab", "a", "", "b"}));
  EXPECT_FALSE(pattern.match("abb"));
  EXPECT_FALSE(pattern.match("xab"));
}

TEST(Pattern, ReplacesEachMatch) {
  EXPECT_EQ(Pattern("(\\w+)@\\w+").replace("a@b, cc@d", "<$1>"), "<a>, <cc>");
  EXPECT_EQ(Pattern("x").replace("", "y"), "");
  EXPECT_EQ(Pattern("x").replace(std::string(1000, 'x'), "four").size(), 4000U) << "it grows";
  EXPECT_EQ(Pattern("=\\K[a-z]+").replace("k=v", ""), "k=");
}

TEST(Pattern, OfCharactersOrOfBytes) {
  const std::string umlaut = "\xc3\xa4";
  EXPECT_FALSE(Pattern("^.$").find(umlaut));
  EXPECT_TRUE(Pattern("^.$", Pattern::Text::utf8).find(umlaut));
  EXPECT_TRUE(Pattern("b", Pattern::Text::utf8).find("\xff b")) << "text that is not UTF-8";
}

TEST(Pattern, WhatIsNoneIsRefusedWithItsPlace) {
  try {
    Pattern("a((");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::invalid_argument& fault) {
    EXPECT_STREQ(fault.what(), "missing closing parenthesis at character 4");
  }
  expect_error(ErrorKind::internal, {""},
               [] { Pattern("(a+)+$").find(std::string(64, 'a') + "b"); });
}

TEST(Replacements, AreMadeOneAfterTheOther) {
  const Replacements all = {{"a", "b"}, {"bb", "c"}};
  EXPECT_EQ(all("ab"), "c");
}

}  // namespace
}  // namespace paceline
