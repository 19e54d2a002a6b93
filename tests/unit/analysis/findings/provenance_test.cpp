#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/findings/findings.h"
#include "analysis/table/table.h"
#include "tests/support/expect_parts.h"
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

// What lies between GPUs and between nodes, also below sums that cross nodes.
TEST(Provenance, LinksAndNetworksAreNamed) {
  const Json ports = {{{"name", "eth0"}, {"link", "Ethernet"}, {"gbit_per_second", 10}},
                      {{"name", "mlx5_0"}, {"link", "InfiniBand"}, {"gbit_per_second", 200}}};
  constexpr char kPorts[] = "InfiniBand 200 Gb/s (mlx5_0), Ethernet 10 Gb/s (eth0)";
  Json json = sample_record();
  json["gpus"] = {{{"name", "NVIDIA H200"}, {"links", "7 by NV18"}}};
  json["provenance"]["machine"] = {{"network", ports}};
  std::string all;
  for (const auto& [name, value] : make_run(Record(json, "here")).origin) {
    all += name + ": " + value + "\n";
  }
  expect_parts(all, {"GPU links: 7 by NV18\n", std::string("network: ") + kPorts});

  Json sums = {{"schema", json["schema"]},
               {"kind", "collective"},
               {"repeat", 1},
               {"attempt", 1},
               {"parameters", Json::object()},
               {"status", "completed"},
               {"layout", {{"gpus", 4}, {"nodes", 2}}},
               {"provenance", {{"backend_used", "our ring"}, {"machine", {{"network", ports}}}}},
               {"collective",
                {{"operation", "all_reduce"},
                 {"dtype", "f32"},
                 {"rows", {{{"bytes", 4096}, {"count", 1024}, {"seconds", 1e-5}}}}}}};
  const auto text = [&] { return to_text(collectives_document({Record(sums, "here")})); };
  expect_parts(text(), {std::string("network of a node: ") + kPorts});
  sums["layout"]["nodes"] = 1;
  expect_no_parts(text(), {"network of a node"});
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
