#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(JsonText, IsTheSameJson) {
  const Json json = {{"a\u009b", {1, 2.5, nullptr, true}}, {"\u202e", "x\x1b\x7f\n\u00b1"}};
  for (const int indent : {-1, 0, 2}) {
    const std::string text = json_text(json, indent);
    EXPECT_EQ(Json::parse(text), json);
    EXPECT_EQ(text.find('\x7f'), std::string::npos);
    expect_no_parts(text, {"\u009b", "\u202e"});
    expect_parts(text, {"\u00b1"});
  }
  EXPECT_EQ(json_text(Json("\x7f\u2066")), R"("\u007f\u2066")");
}

TEST(JsonText, TakesBytesThatAreNoText) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\ufffd\"");
}

}  // namespace
}  // namespace paceline
