#include "results/machine.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "results/run_record.h"
#include "results/store.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

Machine machine(const std::string& cpu, int cpus = 0, double gb = 0, const std::string& gpu = "") {
  return {cpu, gpu, cpus, gb * 1e9};
}

TEST(Machine, IsReadFromARecord) {
  Json json = sample_record();
  EXPECT_EQ(identify_machine(Record(json, "r")).text(), "A CPU");
  json["provenance"]["machine"] = {{"cpus", 64}, {"memory_bytes", 256e9}};
  json["gpus"] = Json::array({{{"name", "H200"}}, {{"name", "H200"}}, {{"pci", "0"}}});
  EXPECT_EQ(identify_machine(Record(json, "r")).text(), "A CPU, 64 CPUs, 256 GB, H200");
  json["provenance"] = {{"machine", {{"cpus", nullptr}, {"memory_bytes", nullptr}}}};
  json.erase("gpus");
  EXPECT_FALSE(identify_machine(Record(json, "r")).is_known());
}

TEST(Machine, AreAlikeInAllThatBothHave) {
  EXPECT_TRUE(alike(machine("A", 64, 256), machine("A", 64, 251)));
  EXPECT_FALSE(alike(machine("A"), machine("B")));
  EXPECT_FALSE(alike(machine("A", 64), machine("A", 2)));
  EXPECT_FALSE(alike(machine("A", 64, 256), machine("A", 64, 512)));
  EXPECT_FALSE(alike(machine("A", 64, 0, "H100"), machine("A", 64, 0, "H200")));
  EXPECT_TRUE(alike(machine("A"), machine("A", 64, 256, "H200"))) << "an older record tells less";
  EXPECT_TRUE(alike(machine(""), machine("A")));
}

TEST(Machine, KindsAreTheBestKnown) {
  const auto kinds =
      kinds_of_machines({machine("A"), machine(""), machine("B", 2), machine("A", 64)});
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].text(), "B, 2 CPUs");
  EXPECT_EQ(kinds[1].text(), "A, 64 CPUs");
}

TEST(Machine, KindsHaveTheShortestDistinctNames) {
  using Names = std::vector<std::string>;
  const Machine xeon = machine("Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 28, 256);
  const Machine epyc = machine("AMD EPYC 9654 96-Core Processor", 192, 768);
  EXPECT_EQ(name_machines({xeon, epyc}), (Names{"Intel Xeon E5-2690 v4", "AMD EPYC 9654"}));
  EXPECT_EQ(name_machines({machine("A", 2), machine("A", 64)}), (Names{"A, 2 CPUs", "A, 64 CPUs"}));
  EXPECT_EQ(name_machines({machine("A", 2, 8), machine("A", 2, 32)}),
            (Names{"A, 2 CPUs, 8 GB", "A, 2 CPUs, 32 GB"}));
  EXPECT_EQ(name_machines({machine("A", 2, 8, "H100"), machine("A", 2, 8, "H200")}),
            (Names{"H100", "H200"}));
  EXPECT_EQ(name_machines({machine("A", 2, 8, "H100"), machine("A", 4, 8)}),
            (Names{"A, 2 CPUs", "A, 4 CPUs"}));
}

TEST(Machine, EachHasTheNameOfItsKindWhereThereAreSeveral) {
  using Names = std::vector<std::string>;
  const Machine epyc = machine("AMD EPYC 9654", 192, 768);
  EXPECT_EQ(name_machines({epyc, {}, machine("AMD EPYC 9654")}), (Names{"", "", ""}));
  EXPECT_EQ(name_machines({epyc, {}, machine("A", 2), epyc}),
            (Names{"AMD EPYC 9654", "", "A", "AMD EPYC 9654"}));
}

TEST(Machine, WhatIsNotCountedIsReported) {
  EXPECT_EQ(not_counted_lines({"A", "", "B", "A"}),
            (std::vector<std::string>{"2 runs of another machine (A) are not counted",
                                      "1 run of another machine (B) is not counted"}));
}

}  // namespace
}  // namespace paceline
