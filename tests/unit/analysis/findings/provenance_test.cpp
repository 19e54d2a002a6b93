#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/findings/findings.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

Row make_row(const Json& json) {
  Row row;
  row.runs.push_back(make_run(Record(json, "here")));
  return row;
}

std::string command(const std::string& recorded) {
  Json json = sample_record();
  json["provenance"]["command"] = recorded;
  return find_command(make_row(json));
}

TEST(Provenance, CountsRuns) {
  std::vector<Json> records = drifting_study();
  records[0]["provenance"]["cpu_model"] = "Another CPU";
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i]["provenance"]["started_at"] = "2026-01-0" + std::to_string(i + 1) + "T00:00:00Z";
  }
  const auto facts = provenance(make_studies(canonical_content(records)).at(0));
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(format_sentence(facts[0]), "machine: A CPU (5 runs); Another CPU (1 run)");
  EXPECT_EQ(format_sentence(facts[1]), "build: 0.1.0 abc (6 runs)");
  EXPECT_EQ(format_sentence(facts[2]),
            "started: 2026-01-01T00:00:00Z to 2026-01-06T00:00:00Z (6 runs)");
}

TEST(Provenance, TheRecordedCommandWithoutItsPlaces) {
  EXPECT_EQ(command("/opt/paceline train mnist-cnn --gpus=2 --store results/x --quiet "
                    "'--context={\"study\":\"it'\\''s\"}' '--data=a b' --record=\"x y\""),
            "paceline train mnist-cnn --gpus=2 '--data=a b'");
}

TEST(Provenance, AProgramOfTheUsersOwnIsNotOurs) {
  Json json = sample_record();
  json["provenance"]["command"] = "python3 train --epochs 3";
  json["provenance"]["program"] = {{"name", "python3"}};
  EXPECT_EQ(find_command(make_row(json)), "");
}

TEST(Provenance, WithoutACommandItsParameters) {
  const std::string derived = command("");
  EXPECT_TRUE(
      derived.starts_with("paceline train mnist-cnn --gpus=1 --cpus-per-task=1 "
                          "--backend=mpi --precision=fp32"))
      << derived;
  Json json = sample_record();
  json["parameters"]["overlap"] = false;
  EXPECT_NE(find_command(make_row(json)).find(" --no-overlap"), std::string::npos);
  json["kind"] = "published";
  EXPECT_EQ(find_command(make_row(json)), "");
  json["kind"] = "imported";
  json["parameters"]["workload"] = "of somebody else's program";
  EXPECT_EQ(find_command(make_row(json)), "");
}

}  // namespace
}  // namespace paceline
