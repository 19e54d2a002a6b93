#include <gtest/gtest.h>

#include "engine/core/json.h"

namespace paceline {
namespace {

const std::vector<FieldFilter> kSome = {{"a"}, {"deep", {{"x"}}}, {"list"}};

TEST(JsonSkim, KeepsWhatIsWanted) {
  EXPECT_EQ(
      extract_fields(R"({"a": 1, "b": {"a": 2}, "deep": {"x": [1, {"y": "}"}], "z": 3}})", kSome),
      R"({"a":1,"deep":{"x":[1, {"y": "}"}]}})");
  EXPECT_EQ(extract_fields("{\n\"b\": \"a \\\"{[\",\n\"list\": [] }\n", kSome), "{\"list\":[]}");
  EXPECT_EQ(extract_fields(R"({"deep": null, "a": -1.5e3})", kSome), R"({"deep":null,"a":-1.5e3})");
  EXPECT_EQ(extract_fields(" {} ", kSome), "{}");
  EXPECT_EQ(extract_fields(R"({"deep": {}})", kSome), R"({"deep":{}})");
}

TEST(JsonSkim, ATextThatEndsEarlyOrIsNoObjectIsNothing) {
  const std::string whole = R"({"a": 1, "b": {"a": [2, "x\\"]}, "deep": {"x": "y"}})";
  ASSERT_FALSE(extract_fields(whole, kSome).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(extract_fields(whole.substr(0, length), kSome), "") << length;
  }
  for (const char* text : {"[]", "1", "{\"a\" 1}", "{a: 1}", "{\"a\": 1} {}", "{\"a\": 1]"}) {
    EXPECT_EQ(extract_fields(text, kSome), "") << text;
  }
}

}  // namespace
}  // namespace paceline
