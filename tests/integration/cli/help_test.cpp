// What --help prints, whole: a change of it is seen in a file of the folder help.
#include <algorithm>

#include "engine/core/text.h"
#include "results/parameters.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

const std::vector<std::string> kCommands = split(
    ",new,plan,sweep,report,explain,best,gate,history,predict,export,import,archive,merge,why,"
    "screen"
    ",screen report"
    ",train,train --help-all,describe,bench,bench allreduce,bench input,checkpoint"
    ",checkpoint show,checkpoint verify,checkpoint export,data,data make,data fetch"
    ",data verify,submit,status,cancel,collect,list,doctor,completion",
    ',');

class CliHelp : public Cli {
 protected:
  std::string read_help(const std::string& command) const {
    const Ran ran = paceline(command + (contains(command, "--help") ? "" : " --help"));
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_EQ(ran.err, "") << command;
    return ran.out;
  }
};

TEST_F(CliHelp, IsAsTheFilesHaveIt) {
  for (const std::string& command : kCommands) {
    std::string name = command.empty() ? "paceline" : command;
    std::ranges::replace(name, ' ', '_');
    const std::string file = PACELINE_SOURCE_DIR "/tests/integration/cli/help/" + name + ".txt";
    EXPECT_EQ(read_help(command), file_text(file))
        << "if this is as it should be: tests/regenerate";
  }
}

TEST_F(CliHelp, EveryVerbStandsInTheList) {
  const std::string help = read_help("");
  std::size_t listed = 0;
  for (const std::string& line : split(help.substr(0, help.find("\nOptions:")), '\n')) {
    if (!line.starts_with("  ") || line[2] == ' ') continue;
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_EQ(std::count(kCommands.begin(), kCommands.end(), verb), 1) << verb;
    ++listed;
  }
  EXPECT_GT(listed, 15U);
}

TEST_F(CliHelp, ReportsTypesChoicesAndDefaultsWithin100Columns) {
  for (const std::string& command : kCommands) {
    const std::string help = read_help(command);
    const std::string options = help.substr(0, help.find("\nExample"));
    for (const char* word : {" TEXT ", " INT ", " FLOAT ", "REQUIRED", "Excludes:", "{true}"}) {
      EXPECT_FALSE(contains(options, word)) << command << ":" << word << "\n" << options;
    }
    for (const std::string& line : split(options, '\n')) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST_F(CliHelp, TrainShowsWhatIsUsedMostFirstAndTheRestWhenAsked) {
  const std::string usual = read_help("train"), all = read_help("train --help-all");
  EXPECT_LT(usual.find("Most used:"), usual.find("Where it runs:"));
  EXPECT_TRUE(contains(usual, "paceline train --help-all shows all options"));
  EXPECT_FALSE(contains(usual, "rarely used") || contains(all, "rarely used"));
  EXPECT_FALSE(contains(usual, "--clip-norm"));
  EXPECT_TRUE(contains(all, "--gradient-accumulation-steps N"));
  for (const Parameter& parameter : parameters()) {
    const std::string name = option_name(parameter.name).substr(2);
    EXPECT_TRUE(contains(all, "--" + name + " ") || contains(all, "--[no-]" + name + " ") ||
                contains(all, "--" + name + ", "))
        << name;
  }
}

TEST_F(CliHelp, TitlesAreBoldOnATerminalOnly) {
  EXPECT_FALSE(contains(read_help("train"), "\033"));
  if (shell("command -v script").code != 0) GTEST_SKIP() << "no script(1): no terminal to test on";
  const std::string line = " script -qec \"'" PACELINE_BINARY "' train --help\" /dev/null";
  EXPECT_TRUE(contains(shell("env -u NO_COLOR TERM=xterm" + line).out, "\033[1mMost used:"));
  EXPECT_FALSE(contains(shell("NO_COLOR=1 TERM=xterm" + line).out, "\033["));
}

}  // namespace
}  // namespace paceline
