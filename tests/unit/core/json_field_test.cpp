// Readers of checked JSON: what they take, and how a complaint names its place.
#include "engine/core/json_field.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

enum class Colour { red, green };
constexpr EnumName<Colour> kColours[] = {{Colour::red, "red"}, {Colour::green, "green"}};

struct Settings {
  std::string name;
  bool on = false;
  int count = 0;
  double share = 0;
  Colour colour = Colour::red;
  std::vector<std::string> words;
};

Settings read(const std::string& text) {
  const JsonDocument document("f.json", text);
  const JsonField root(document, "see the page");
  Settings settings;
  root.read({{"name", into(settings.name)},
             {"on", into(settings.on)},
             {"inner", into({{"count", into(settings.count, 1, 10)},
                             {"share", into(settings.share, 0, 1)},
                             {"colour", into(settings.colour, kColours)}})},
             {"words", [&](const JsonField& field) { settings.words = field.texts(); }}});
  root.at("name");
  return settings;
}

TEST(JsonField, ReadsIntoVariables) {
  const Settings settings = read(R"({"name": "n", "on": true, "words": ["a", "b"],
    "inner": {"count": 10, "share": 0.5, "colour": "green"}})");
  EXPECT_EQ(settings.name, "n");
  EXPECT_TRUE(settings.on);
  EXPECT_EQ(settings.count, 10);
  EXPECT_EQ(settings.share, 0.5);
  EXPECT_EQ(settings.colour, Colour::green);
  EXPECT_EQ(settings.words, (std::vector<std::string>{"a", "b"}));
}

TEST(JsonField, ComplaintsNameFileLineKeyAndCure) {
  for (const auto& [members, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"\"name\": \"\"", "f.json:2: name must be a text; see the page"},
           {"\"on\": 1", "f.json:2: on must be true or false; see the page"},
           {"\"inner\": {\n\"count\": 11}", "f.json:3: count must be a whole number from 1 to 10"},
           {"\"inner\": {\"count\": 1.5}", "f.json:2: count must be a whole number from 1 to 10"},
           {"\"inner\": {\"share\": 2}", "f.json:2: share must be a number from 0 to 1"},
           {"\"inner\": {\"colour\": \"gren\"}",
            "colour cannot be \"gren\"; did you mean \"green\"?"},
           {"\"inner\": []", "f.json:2: inner must be an object; see the page"},
           {"\"inner\": {\"cuont\": 1}", "unknown key \"cuont\"; did you mean \"count\"?"},
           {"\"words\": \"a\"", "f.json:2: words must be a list; put its values in [ ]"},
           {"\"words\": [\"a\",\n1]", "f.json:3: words[1] must be a text; see the page"},
           {"\"on\": true", "f.json:1: \"name\" is missing; add it"}}) {
    const std::string line =
        catch_error(ErrorKind::input, [&text = members] { read("{\n" + text + "}"); });
    EXPECT_TRUE(contains(line, complaint)) << line;
  }
  expect_error(ErrorKind::input, {"f.json:1: the file must be a JSON object"}, [] { read("[]"); });
}

}  // namespace
}  // namespace paceline
