#include "engine/core/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

void refuse(const std::string& text, const std::vector<std::string>& parts) {
  expect_error(ErrorKind::input, parts, [&] { JsonDocument("spec.json", text); });
}

TEST(Json, KeepsOrderAndValues) {
  const JsonDocument document("spec.json", R"({"b": [1, 2.5, "x", null, true], "a": {"c": {}}})");
  EXPECT_EQ(document.value().dump(), R"({"b":[1,2.5,"x",null,true],"a":{"c":{}}})");
}

TEST(Json, ErrorsNameLineAndColumn) {
  refuse("{\n  \"a\": 1,\n  \"b\": tru\n}", {"not JSON", "spec.json", "line 3", "column 11"});
  refuse("{\"a\": 1", {"not JSON", "line 1"});
  refuse("", {"not JSON", "spec.json"});
  refuse("{} x", {"not JSON", "line 1, column 4"});
  refuse("{\"a\": NaN}", {"not JSON"});
  refuse("{\"a\": \"-O3", {"not JSON: a text does not end; was the file cut short?"});
  refuse("{\"a\": \"\xff\xfe\"}", {"not JSON: a text is not UTF-8"});
}

TEST(Json, DuplicateKeysAreRefusedWithTheirLine) {
  refuse("{\n\"a\": 1,\n\"b\": 2,\n\"a\": 3\n}", {"\"a\" is given twice", "spec.json:4"});
  EXPECT_NO_THROW(JsonDocument("spec.json", R"([{"a": 1}, {"a": 2}])"));
}

TEST(Json, DepthIsLimited) {
  EXPECT_NO_THROW(JsonDocument("x", std::string(100, '[') + std::string(100, ']')));
  refuse(std::string(101, '[') + std::string(101, ']'), {"nested deeper than 100"});
  refuse(std::string(1'000'000, '['), {"nested deeper"});
}

TEST(Json, WhereNamesTheLineOfAKeyOrItsNearestParent) {
  const JsonDocument document("spec.json",
                              "{\n"
                              "  \"axes\": {\n"
                              "    \"gpus\": [\n"
                              "      1,\n"
                              "      2\n"
                              "    ]\n"
                              "  },\n"
                              "  \"a/b\": 0\n"
                              "}\n");
  EXPECT_EQ(document.where("/axes"), "spec.json:2");
  EXPECT_EQ(document.where("/axes/gpus"), "spec.json:3");
  EXPECT_EQ(document.where("/axes/gpus/1"), "spec.json:5");
  EXPECT_EQ(document.where("/axes/gpus/7"), "spec.json:3");
  EXPECT_EQ(document.where("/axes/nodes"), "spec.json:2");
  EXPECT_EQ(document.where("/a~1b"), "spec.json:8");
}

TEST(Json, FilesThatCannotBeRead) {
  const Scratch scratch;
  expect_error(ErrorKind::input, {"cannot be read", "absent.json"},
               [&] { read_text(scratch.path() / "absent.json"); });
  expect_error(ErrorKind::input, {"is a folder"}, [&] { read_text(scratch.path()); });
  std::ofstream(scratch.path() / "large") << std::string(1001, 'x');
  expect_error(ErrorKind::input, {"is larger than 1.0 kB"},
               [&] { read_text(scratch.path() / "large", 1000); });
  EXPECT_EQ(read_text(scratch.path() / "large", 1001).size(), 1001U);
}

}  // namespace
}  // namespace paceline
