#include "results/configuration.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/expect_error.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class ReadConfiguration : public ::testing::Test {
 protected:
  ReadConfiguration() {
    fs::create_directories(scratch_ / "etc");
    fs::create_directories(scratch_ / "home");
  }

  void write(const char* whose, const std::string& text) const {
    std::ofstream(file(whose)) << text;
  }
  Configuration read() const {
    return read_configuration({file("etc"), file("home")},
                              {{"HOME", "/home/ann"}, {"USER", "ann"}, {"EMPTY", ""}});
  }
  std::string refusal() const {
    return catch_error(ErrorKind::input, [&] { read(); });
  }
  fs::path file(const char* whose) const { return scratch_ / whose / "config.json"; }

  Scratch scratch_;
};

TEST_F(ReadConfiguration, WithoutFilesNothingIsSet) {
  const Configuration configuration = read();
  EXPECT_EQ(configuration.results.value, "results/local");
  EXPECT_EQ(configuration.results.from, "");
  EXPECT_EQ(configuration.site.value, "");
}

TEST_F(ReadConfiguration, AUsersSettingsGoAboveTheCentres) {
  write("etc", R"({"results": "/scratch/$USER/studies", "site": "generic"})");
  EXPECT_EQ(read().results.value, "/scratch/ann/studies");
  write("home", "{ // mine\n  \"results\": \"~/studies\",\n}");
  const Configuration configuration = read();
  EXPECT_EQ(configuration.results.value, "/home/ann/studies");
  EXPECT_EQ(configuration.results.from, file("home").string() + ":2");
  EXPECT_EQ(configuration.site.value, "generic") << "what one file leaves out, the other says";
  EXPECT_EQ(configuration.site.from, file("etc").string() + ":1");
}

TEST_F(ReadConfiguration, ExpandsVariablesAnywhereAndAHomeAtTheFront) {
  for (const auto& [written, meant] : {std::pair{"${USER}s/$USER", "anns/ann"},
                                       {"~", "/home/ann"},
                                       {"a~/~", "a~/~"},
                                       {"~ann/x", "~ann/x"},
                                       {"a$", "a$"},
                                       {"$USER$USER", "annann"}}) {
    write("home", std::string(R"({"results": ")") + written + "\"}");
    EXPECT_EQ(read().results.value, meant) << written;
  }
  for (const char* name : {"NOT_SET", "EMPTY"}) {
    write("home", std::string(R"({"results": "/a/$)") + name + "\"}");
    expect_parts(refusal(), {"config.json:1", std::string(name) + " is not set", "write the path"});
  }
}

TEST_F(ReadConfiguration, AProfileBesideTheFileIsThatOne) {
  write("etc", R"({"site": "fjord.json"})");
  EXPECT_EQ(read().site.value, "fjord.json");
  std::ofstream(scratch_ / "etc" / "fjord.json") << "{}";
  EXPECT_EQ(read().site.value, (scratch_ / "etc" / "fjord.json").string());
}

TEST_F(ReadConfiguration, RefusesWhatItDoesNotKnow) {
  for (const auto& [text, parts] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {R"({"reslts": "a"})", {"config.json:1", "reslts", "results"}},
           {R"({"results": ""})", {"config.json:1", "results"}},
           {R"({"results": 3})", {"config.json:1", "results"}},
           {R"({"site": ["a"]})", {"config.json:1", "site"}},
           {R"([])", {"config.json:1"}},
           {R"({"results": "a", "results": "b"})", {"config.json:1", "results"}},
           {"{\n\"results\" \"a\"}", {"config.json:2"}}}) {
    write("home", text);
    expect_parts(refusal(), parts);
  }
}

TEST(ConfigurationFiles, FollowTheEnvironment) {
  const fs::path centre = "/etc/paceline/config.json";
  EXPECT_EQ(configuration_files({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "/c"}}),
            (std::vector<fs::path>{centre, "/c/paceline/config.json"}));
  EXPECT_EQ(configuration_files({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "relative"}}),
            (std::vector<fs::path>{centre, "/h/.config/paceline/config.json"}));
  EXPECT_EQ(configuration_files({}), (std::vector<fs::path>{centre}));
}

}  // namespace
}  // namespace paceline
