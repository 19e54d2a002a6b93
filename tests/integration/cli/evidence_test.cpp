// What every verb takes from the evidence: which runs count, and what may not be compared in
// silence.
#include <nlohmann/json.hpp>

#include "results/store.h"
#include "tests/integration/cli/paceline.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

constexpr double kOdd = 4321;  // seconds of a run that must not count

class CliEvidence : public Cli {
 protected:
  // One, two and four replicas, three sessions of three rounds each.
  static std::vector<Json> study(const std::string& month = "11") {
    std::vector<Json> records;
    const double noise[] = {1, 1.01, 0.99};
    for (int day = 1; day <= 3; ++day) {
      for (const int gpus : {1, 2, 4}) {
        for (int round = 1; round <= 3; ++round) {
          Json record = sample_record({.gpus = gpus,
                                       .repeat = 3 * (day - 1) + round,
                                       .round = round,
                                       .fit_seconds = 20.0 / gpus * noise[round - 1] + 1,
                                       .session = "2026" + month + "0" + std::to_string(day)});
          record["provenance"]["started_at"] =
              "2026-" + month + "-0" + std::to_string(day) + "T00:00:00Z";
          record["provenance"]["data_hash"] = "1111";
          records.push_back(record);
        }
      }
    }
    return records;
  }

  void write(const std::string& name, const std::vector<Json>& records) const {
    const Store store(folder() / name);
    for (const Json& json : records) store.write(json["point"], json["repeat"], json, "");
  }

  // All that each verb makes of a study, beside another of the month before.
  std::vector<std::pair<std::string, std::string>> all_verbs(const std::string& name) const {
    if (!std::filesystem::exists(folder() / "october")) write("october", study("10"));
    const std::string plan = "plan " PACELINE_SOURCE_DIR "/sweeps/quick.json --detect 3% --pilot ";
    std::vector<std::pair<std::string, std::string>> outputs;
    for (const std::string& call :
         {"report " + name + " --no-plots", "report " + name + " --json",
          "report " + name + " --sheet --no-plots", "explain " + name, "best " + name,
          "history " + name + " --json", "predict " + name + " --gpus 8", plan + name,
          "gate --baseline october --current " + name, "report october " + name + " --no-plots",
          "export " + name + " --format openmetrics"}) {
      const Ran ran = shell("COLUMNS=400 paceline " + call);
      EXPECT_LE(ran.code, 2) << call << ran.err;
      outputs.emplace_back(call, ran.out);
    }
    return outputs;
  }
};

// A run of 4,321 s that any reason takes out appears in no figure of any verb.
TEST_F(CliEvidence, ARunThatDoesNotCountCountsInNoVerb) {
  write("clean", study());
  const auto clean = all_verbs("clean");
  const std::pair<const char*, void (*)(Json&)> reasons[] = {
      {"resumed", [](Json& run) { run["flags"]["resumed"] = true; }},
      {"throttled", [](Json& run) { run["flags"]["throttled"] = true; }},
      {"traced", [](Json& run) { run["flags"]["traced"] = true; }},
      {"oversubscribed", [](Json& run) { run["flags"]["oversubscribed"] = true; }},
      {"failed", [](Json& run) { run["status"] = "failed"; }},
      {"control", [](Json& run) { run["parameters"]["control"] = true; }}};
  for (const auto& [reason, mark] : reasons) {
    std::vector<Json> records = study();
    Json odd = records.front();
    odd["repeat"] = 77;
    odd["round"] = 7;
    odd["timing"]["fit_seconds"] = kOdd;
    odd["throughput"]["samples_per_second"] = 120000 / kOdd;
    odd["provenance"]["data_hash"] = "9999";  // and no verb compares it
    mark(odd);
    records.push_back(odd);
    write(reason, records);
    const auto with = all_verbs(reason);
    for (std::size_t i = 0; i < clean.size(); ++i) {
      const std::string& call = clean[i].first;
      EXPECT_FALSE(contains(with[i].second, "4321")) << reason << ": " << call;
      EXPECT_FALSE(contains(with[i].second, "different data")) << reason << ": " << call;
    }
    EXPECT_EQ(with.back().second, clean.back().second) << reason << ": an export has means alone";
  }
}

TEST_F(CliEvidence, ARunOfAnOlderBuildThatWasMadeAgainCountsInNoVerbButHistory) {
  std::vector<Json> records = study();
  Json again = records.front();
  again["attempt"] = 2;
  again["provenance"]["commit"] = "fedcba9";
  records.front()["provenance"]["commit"] = "0123456";
  records.front()["timing"]["fit_seconds"] = kOdd;
  records.push_back(again);
  const Store store(folder() / "rebuilt");
  for (const Json& json : records) store.write(json["point"], json["repeat"], json, "");
  for (const auto& [call, out] : all_verbs("rebuilt")) {
    EXPECT_EQ(contains(out, "4321"), call.starts_with("history")) << call << out;
  }
}

// The rows of a table and the sides of a gate are of different data.
TEST_F(CliEvidence, EveryVerbNamesACovariateThatDiffers) {
  std::vector<Json> records = study();
  for (Json& record : records) {
    if (record["parameters"]["gpus"] == 2) record["provenance"]["data_hash"] = "2222";
  }
  write("mixed", records);
  const auto outputs = all_verbs("mixed");
  for (const auto& [call, out] : outputs) {
    const bool has_room = !call.starts_with("plan") && !call.starts_with("export");
    EXPECT_EQ(contains(out, "different data: "), has_room) << call << "\n" << out;
  }
}

// Two replicas ran on another node than the other rows, and than the baseline.
TEST_F(CliEvidence, EveryVerbNamesANodeOfItsOwn) {
  std::vector<Json> records = study();
  for (Json& record : records) {
    record["provenance"]["hosts"] = {record["parameters"]["gpus"] == 2 ? "node7" : "node1"};
  }
  write("nodes", records);
  records = study("10");
  for (Json& record : records) record["provenance"]["hosts"] = {"node1"};
  write("october", records);
  for (const auto& [call, out] : all_verbs("nodes")) {
    const bool has_room = !call.starts_with("plan") && !call.starts_with("export");
    EXPECT_EQ(contains(out, "ran only on node7, no "), has_room) << call << "\n" << out;
  }
}

TEST_F(CliEvidence, EveryVerbThatSelectsObeysOnly) {
  std::vector<Json> records = study();
  for (Json json : study()) {
    json["parameters"]["backend"] = "ring";
    json["point"] = json["point"].get<std::string>() + "x";
    records.push_back(json);
  }
  write("both", records);
  for (const std::string verb :
       {"report", "explain", "best", "history --json", "predict --gpus 8"}) {
    EXPECT_TRUE(contains(shell("paceline " + verb + " both").out, "ring")) << verb;
    const Ran only = shell("paceline " + verb + " both --only backend=mpi");
    EXPECT_EQ(only.code, 0) << verb << only.err;
    EXPECT_FALSE(contains(only.out, "ring,") || contains(only.out, "ring ")) << verb << only.out;
  }
}

TEST_F(CliEvidence, EveryVerbOfSpeedUpsObeysTheBase) {
  write("clean", study());
  for (const std::string verb : {"report", "explain", "report --sheet"}) {
    const std::string call = "paceline " + verb + " clean --json --base ";
    const Ran one = shell(call + "smallest"), two = shell(call + "gpus=2");
    EXPECT_EQ(two.code, 0) << verb << two.err;
    EXPECT_NE(one.out, two.out) << verb;
  }
}

// A unit is what the record calls it, with no list of units anywhere.
TEST_F(CliEvidence, EveryVerbSpeaksOfTheUnitOfTheRecord) {
  std::vector<Json> records = study();
  for (Json& record : records) record["throughput"]["unit"] = "frames";
  write("frames", records);
  for (const auto& [call, out] : all_verbs("frames")) {
    EXPECT_FALSE(contains(out, "samples/s") && !contains(call, "october")) << call << "\n" << out;
  }
  for (const std::string call :
       {"report frames --verbose", "report frames --format latex", "report frames --sheet"}) {
    EXPECT_TRUE(contains(shell("paceline " + call).out, "frames/s")) << call;
  }
}

}  // namespace
}  // namespace paceline
