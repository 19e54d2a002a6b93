// What `paceline train --trace` leaves.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

using nlohmann::json;

constexpr char kTraced[] =
    "train mnist-cnn --train-limit 1280 --test-limit 100 --batch-per-replica 32 --steps 20 "
    "--gpus 2 --oversubscribe --bucket-mb 0.5 --evaluate none --json ";
constexpr char kOneCpuEach[] = "--quiet --cpus-per-replica 1 --backend ";

class Trace : public Cli {
 protected:
  json collect_trace(const std::string& arguments) {
    record_ = json::parse(succeed(kTraced + arguments + " --trace trace.json").out, nullptr, false);
    return json::parse(file_text(folder() / "trace.json"), nullptr, false);
  }
  json record_;
};

// sequence -> rank -> begin and end, microseconds of rank 0's clock
using Collectives = std::map<int, std::map<int, std::pair<double, double>>>;

Collectives count_collectives(const json& trace) {
  Collectives found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || !event["args"].contains("sequence")) continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    found[event["args"]["sequence"]][event["pid"]] = {begin, end};
  }
  return found;
}

void expect_arrows(const json& trace) {
  std::map<std::string, int> starts, ends;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") ++starts[event["id"]];
    if (event["ph"] == "f") ++ends[event["id"]];
  }
  EXPECT_FALSE(starts.empty());
  EXPECT_EQ(starts, ends);
  for (const auto& [id, count] : starts) EXPECT_EQ(count, 1) << id;
}

// Nobody's sum ends before everybody's has begun, as far as clocks are known.
void expect_causality(const json& trace, double tolerance) {
  const Collectives all = count_collectives(trace);
  EXPECT_GE(all.size(), 20U);
  for (const auto& [sequence, ranks] : all) {
    ASSERT_EQ(ranks.size(), 2U) << sequence;
    EXPECT_GE(ranks.at(0).second, ranks.at(1).first - tolerance) << sequence;
    EXPECT_GE(ranks.at(1).second, ranks.at(0).first - tolerance) << sequence;
  }
}

TEST_F(Trace, IsOneFileOfAllRanks) {
  for (const char* backend : {"mirrored", "ring"}) {
    SCOPED_TRACE(backend);
    std::filesystem::remove(folder() / "trace.json");
    const json trace = collect_trace(std::string(kOneCpuEach) + backend);
    ASSERT_TRUE(trace.is_object());
    std::map<std::string, int> names;
    std::map<int, int> ranks;
    for (const json& event : trace["traceEvents"]) {
      ++names[event["name"]];
      ++ranks[event["pid"]];
    }
    EXPECT_EQ(ranks.size(), 2U);
    for (const char* phase : {"step", "forward", "backward"}) EXPECT_EQ(names[phase], 40) << phase;
    EXPECT_EQ(names["batch"], 40);
    EXPECT_EQ(names["bucket 0"], 40);
    EXPECT_EQ(names["dense forward"], 40);
    EXPECT_EQ(names["dense backward"], 40);
    expect_arrows(trace);
    const json& numbers = record_["trace"];
    expect_causality(trace, 1e6 * 2 * numbers["clock_uncertainty_seconds"].get<double>() + 1);
    EXPECT_EQ(numbers["dropped"], 0);
    EXPECT_GT(numbers["communication_seconds"], 0);
    EXPECT_GE(numbers["overlap"], 0);
    EXPECT_LE(numbers.at("overlap"), 1);
    EXPECT_GT(numbers["overhead_seconds"], 0);
    EXPECT_EQ(record_["flags"]["traced"], true);
  }
}

TEST_F(Trace, IsOffUnlessAskedFor) {
  const json record = json::parse(paceline(std::string(kTraced) + kOneCpuEach + "mirrored").out);
  EXPECT_EQ(record["flags"]["traced"], false);
  EXPECT_FALSE(record.contains("trace"));
}

TEST_F(Trace, ReportsWhatWasHidden) {
  const Ran ran =
      succeed(std::string(kTraced) +
              "--backend mirrored --cpus-per-replica 2 --comm-threads 1 --trace trace.json");
  expect_parts(ran.err, {"communication took ", "hidden behind computation"});
}

TEST_F(Trace, RefusesWhatItWouldWriteOver) {
  std::ofstream(folder() / "there.json") << "mine";
  expect_refused("train mnist-mlp --steps 1 --quiet --trace there.json", 65,
                 {"there.json", "another name"});
  expect_refused("train mnist-mlp --steps 1 --quiet --trace no/where.json", 65, {"no/where.json"});
  EXPECT_EQ(file_text(folder() / "there.json"), "mine");
}

}  // namespace
}  // namespace paceline
