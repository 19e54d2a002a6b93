// `paceline screen` here: each rank is a node of its own, as far as it can tell.
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class ScreenVerb : public Cli {
 protected:
  ScreenVerb() { setenv("PACELINE_TEST_RANKS_PER_NODE", "1", 1); }
  ~ScreenVerb() override { unsetenv("PACELINE_TEST_RANKS_PER_NODE"); }
  const std::string run_ = "screen --gpus 4 --device cpu --cpus-per-task 1 --oversubscribe ";
};

TEST_F(ScreenVerb, MeasuresDevicesAndPairsOfNodes) {
  std::vector<std::string> backends = {"ring"};
  if (find_name("backend", "mpi").built) backends.push_back("mpi");
  for (const std::string& backend : backends) {
    SCOPED_TRACE(backend);
    succeed(run_ + "--rounds 2 --out " + backend + " --backend " + backend);
    const Json screen = parse_json(file_text(folder() / backend / "screen.json"));
    EXPECT_EQ(screen["nodes"].size(), 4U);
    ASSERT_EQ(screen["devices"].size(), 4U);
    EXPECT_EQ(screen["devices"][3]["node"], 3);
    for (const Json& each : screen["devices"][0]["measured"]) {
      EXPECT_EQ(each["rates"].size(), 2U);
      EXPECT_GT(each["rates"][0].get<double>(), 1e6) << each;
    }
    EXPECT_EQ(screen["links"].size(), 4U);  // two matchings of two pairs
    for (const Json& link : screen["links"]) EXPECT_EQ(link["measured"].size(), 2U);
    const Json report = parse_json(succeed("screen report " + backend + " --json").out);
    EXPECT_EQ(report["nodes"], 4);
    EXPECT_EQ(report["backend"], backend);
    EXPECT_FALSE(report["compared"].empty());
  }
}

// For a nightly job.
TEST_F(ScreenVerb, FailsWhereItIsAskedTo) {
  Json screen = {{"schema", 1}, {"backend", "ring"}};
  for (int i = 0; i < 16; ++i) {
    screen["nodes"].push_back({{"host", "n" + std::to_string(i)}, {"kind", "A"}});
    const double rate = (i == 3 ? 0.5 : 1) * (1 + 0.01 * ((7 * i) % 5));
    screen["devices"].push_back(
        {{"node", i},
         {"name", "CPUs 0"},
         {"kind", "A"},
         {"measured", {{{"measured", "memory copies"}, {"rates", {rate, rate, rate}}}}}});
  }
  std::ofstream(folder() / "screen.json") << screen;
  expect_parts(succeed("screen report screen.json").out, {"1 slow part: CPUs 0 of n3 is "});
  const Ran ran = paceline("screen report . --fail --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(parse_json(ran.out)["exclude"], Json{"n3"});
}

TEST_F(ScreenVerb, IsAPageAndAHistory) {
  for (const char* name : {"screens/a", "screens/b"}) {
    succeed(run_ + "--rounds 1 --backend ring --out " + name);
  }
  for (int again = 0; again < 2; ++again) {  // its own files are replaced
    expect_parts(succeed("screen report screens/a --out page").out, {"page/screen-report.html"});
  }
  expect_parts(file_text(folder() / "page" / "screen-report.html"),
               {"Pairs of nodes: sums of 4 MB", "<svg"});
  const Json history = parse_json(succeed("history screens --json").out);
  expect_parts(succeed("history screens").out, {"History: screens, backend ring"});
  EXPECT_FALSE(history["history"][0]["series"].empty());
  expect_refused("history screens --metric time", 64, {"--metric", "--since chooses"});
}

// The script alone; a job on a cluster: tests/slurm.
TEST_F(ScreenVerb, AsAJobPrintsWhatItWouldSend) {
  std::ofstream(folder() / "site.json")
      << R"({"name": "site", "account": "XXX", "device": "cpu", "cores_per_node": 8})";
  const std::string job = "screen --site site.json --nodes 4 ";
  const std::string script = succeed(job + "--dry-run --busy-ok").out;
  expect_parts(script, {"# warning: site.json: account is XXX", "#SBATCH --nodes=4\n",
                        " screen --gpus=4 --nodes=4 --cpus-per-task=8 --device=cpu --backend=ring "
                        "--busy-ok --out \"$folder\""});
  EXPECT_FALSE(std::filesystem::exists(folder() / "screens"));
  expect_refused(job, 64, {"account is XXX", "replace each"});
  expect_refused("screen --site site.json", 64, {"--nodes"});
  expect_refused("screen --nodes 4 --dry-run", 64, {"--site"});
  expect_refused(job + "--fail", 64, {"--fail", "add --wait"});
  expect_refused(job + "--backend what", 64, {"what"});
  expect_refused(job + "--device what", 64, {"what"});
  expect_parts(succeed(job + "--device reference --dry-run").out, {" --device=reference "});
  expect_refused(job + "--device cuda", 64, {"how many GPUs a node has", "gpus_per_node"});
  expect_refused(job + "--gpus 4", 64, {"--gpus"});
}

TEST_F(ScreenVerb, OneNodeHasNoLinks) {
  unsetenv("PACELINE_TEST_RANKS_PER_NODE");
  const Ran ran = succeed(run_ + "--rounds 1 --out one");
  expect_parts(ran.out, {"1 node, 4 devices, 0 links"});
  const Json within =
      parse_json(file_text(folder() / "one" / "screen.json"))["nodes"][0]["measured"];
  ASSERT_EQ(within.size(), 2U);
  EXPECT_EQ(within[0]["measured"], "sums of 4 MB within the node");
  EXPECT_GT(within[0]["rates"][0], 1e5);
}

TEST_F(ScreenVerb, RefusesWhatItCannotMeasure) {
  expect_refused("screen --gpus 2 --oversubscribe --device cpu --backend mirrored", 64,
                 {"several replicas a task", "ring, mpi or nccl"});
  succeed(run_ + "--rounds 1 --out once");
  expect_refused(run_ + "--rounds 1 --out once", 65, {"once/screen.json"});
  expect_refused("screen report nowhere", 65, {"no screen", "nowhere"});
  expect_refused("screen --rounds 0", 64, {"--rounds"});
}

}  // namespace
}  // namespace paceline
