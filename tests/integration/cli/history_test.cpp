// `paceline history` as a user runs it.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

const std::string kTable = PACELINE_SOURCE_DIR "/results/reference/csc-gpt-neo";

using CliHistory = Cli;

TEST_F(CliHistory, WritesAPageAndTheSameInFiles) {
  const Ran ran = shell("COLUMNS=80 paceline history " + kTable + " --out out --no-plots");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "history: out/history.html")) << ran.out;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  for (const char* name : {"history.html", "history.md", "history.csv", "history.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder() / "out" / name)) << name;
  }
  const Ran json = shell("paceline history " + kTable + " --json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["history"].size(), 1U);
  const Ran again =
      shell("paceline history " + kTable + " --out out --no-plots --metric throughput");
  EXPECT_EQ(again.code, 0) << again.err;  // its own files are replaced
}

TEST_F(CliHistory, NeverReplacesOtherFiles) {
  const Ran ran = shell("mkdir out; echo mine > out/history.md; paceline history " + kTable +
                        " --out out; code=$?; cat out/history.md; exit $code");
  EXPECT_EQ(ran.code, 65);
  EXPECT_EQ(ran.out, "mine\n");
}

TEST_F(CliHistory, RefusesInOneLine) {
  const std::pair<std::string, int> calls[] = {{"history nowhere", 65},
                                               {"history " + kTable + " --metric tmie", 64},
                                               {"history " + kTable + " --since yesterday", 64},
                                               {"history " + kTable + " --since 2027-01-01", 65},
                                               {"history " + kTable + " --point gpus=99", 64},
                                               {"history " + kTable + " --point gpus", 64},
                                               {"history " + kTable + " --plots png", 64}};
  for (const auto& [call, code] : calls) {
    const Ran ran = shell("paceline " + call);
    EXPECT_EQ(ran.code, code) << call;
    EXPECT_EQ(ran.out, "") << call;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

// 30 nights of about 100 samples/s, and a last third of which each is `factor` as fast.
std::string nights_table(double factor) {
  std::ostringstream made;
  made << R"(mkdir nights; cat > nights/table.json <<'END'
{"record": {"parameters": {"workload": "w"}, "layout": {"replicas_are": "gpus"}, "provenance": {"source": "s"}},
 "columns": {"date": {"to": ["/session"], "text": true}, "gpus": {"to": ["/layout/gpus"]},
             "rate": {"to": ["/throughput/samples_per_second"]}}}
END
cat > nights/table.csv <<'END'
date,gpus,rate
)";
  for (int night = 1; night <= 30; ++night) {
    const double rate = 100 + (night * 7 % 5 - 2) * 0.3;
    made << "2026-01-" << (night < 10 ? "0" : "") << night << ",1,"
         << (night > 20 ? factor * rate : rate) << '\n';
  }
  return made.str() + "END\n";
}

TEST_F(CliHistory, FailsOnAShiftForTheWorseIfAsked) {
  const Ran slower = shell(nights_table(0.8) +
                           "paceline history nights > out && paceline history nights "
                           "--fail-on-shift --json");
  EXPECT_EQ(slower.code, 1) << slower.err;
  EXPECT_TRUE(nlohmann::json::parse(slower.out)["history"][0]["shifts"][0]["worse"]);
  const Ran since = shell("paceline history nights --fail-on-shift --since 2026-01-21");
  EXPECT_EQ(since.code, 0) << since.out << since.err;
}

TEST_F(CliHistory, NeverFailsOnAShiftForTheBetter) {
  const Ran ran = shell(nights_table(1.25) + "paceline history nights --fail-on-shift");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "(better)")) << ran.out;
}

TEST_F(CliHistory, NamesAreHarmless) {
  const Ran ran = shell(
      R"(mkdir odd; printf 'date,gpus,rate\n"2026-01-01\033[31m",1,1\n2026-01-02<b>,1,2\n2026-01-03,1,3\n' > odd/table.csv
cat > odd/table.json <<'END'
{"record": {"parameters": {"workload": "w\u001b[2J"}, "layout": {"replicas_are": "gpus"}, "provenance": {"source": "s"}},
 "columns": {"date": {"to": ["/session"], "text": true}, "gpus": {"to": ["/layout/gpus"]},
             "rate": {"to": ["/throughput/samples_per_second"]}}}
END
paceline history odd)");
  EXPECT_FALSE(contains(ran.out + ran.err, "\x1b"));
}

}  // namespace
}  // namespace paceline
