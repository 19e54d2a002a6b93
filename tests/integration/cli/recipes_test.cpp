// The recipes for CI systems: well-formed, and with options that there are.
#include <regex>
#include <set>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using testing::contains;

class Recipes : public testing::Cli {
 protected:
  static std::vector<fs::path> files() {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(PACELINE_SOURCE_DIR "/docs/recipes")) {
      found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(Recipes, AreThoseThatTheDocsName) {
  const std::string docs = text_of(PACELINE_SOURCE_DIR "/docs/gate.md");
  EXPECT_EQ(files().size(), 2U);
  for (const fs::path& file : files()) {
    EXPECT_TRUE(contains(docs, "recipes/" + file.filename().string())) << file;
  }
}

TEST_F(Recipes, NameOptionsThatThereAre) {
  const std::string help = paceline("gate --help").out;
  const std::regex option("--[a-z-]+");
  for (const fs::path& file : files()) {
    const std::string text = text_of(file);
    const auto gate = text.find("bin/paceline gate ");
    ASSERT_NE(gate, std::string::npos) << file;
    const std::string command = text.substr(gate, text.find("gate.md", gate) - gate);
    std::set<std::string> options;
    for (std::sregex_iterator it(command.begin(), command.end(), option), end; it != end; ++it) {
      options.insert(it->str());
    }
    EXPECT_TRUE(options.contains("--ab") && options.contains("--junit")) << command;
    for (const std::string& each : options) {
      EXPECT_TRUE(contains(help, each + " ") || contains(help, each + "\n"))
          << each << " in " << file;
    }
    EXPECT_EQ(text.find('\t'), std::string::npos) << "YAML knows no tabs: " << file;
  }
}

TEST_F(Recipes, AreYaml) {
  if (shell("python3 -c 'import yaml'").code != 0) GTEST_SKIP() << "there is no python3-yaml";
  for (const fs::path& file : files()) {
    const auto ran = shell(
        "python3 -c 'import sys, yaml; d = yaml.safe_load(open(sys.argv[1])); "
        "assert d.get(\"jobs\") or d[\"performance\"][\"script\"]' '" +
        file.string() + "'");
    EXPECT_EQ(ran.code, 0) << file << ran.err;
  }
}

}  // namespace
}  // namespace paceline
