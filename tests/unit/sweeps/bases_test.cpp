#include <gtest/gtest.h>

#include <filesystem>

#include "sweeps/expansion.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

std::vector<std::string> missing_in(const std::string& keys) {
  return missing_bases(make_expansion(keys).points);
}

TEST(Bases, OfAsManyCpus) {
  const std::string axes = R"("axes": {"gpus": [1, 2], "backend": ["mpi", "mirrored"])";
  EXPECT_TRUE(missing_in(axes + "}").empty()) << "held fixed where the spec says nothing";
  EXPECT_TRUE(missing_in(axes + R"(, "cpus_per_replica": [1, 2]})").empty());
  const auto lines = missing_in(
      R"("axes": {"backend": ["mpi", "mirrored"]}, "zip": {"gpus": [1, 2], "cpus_per_task": [4, 2]})");
  ASSERT_EQ(lines.size(), 1U);
  expect_parts(lines[0], {"no speed-up for gpus=2,cpus_per_task=2,backend=mpi and 1 more",
                          "no point of one replica has as many CPUs", "cpus_per_replica"});
}

TEST(Bases, OfOneReplicaAndOfTheSameSettings) {
  const auto none = missing_in(R"("fixed": {"backend": "mpi"}, "axes": {"gpus": [2, 4]})");
  ASSERT_EQ(none.size(), 1U);
  expect_parts(none[0], {"gpus=2 and 1 more", "no point of one replica is like it", "add gpus 1"});
  EXPECT_TRUE(missing_in(R"("axes": {"gpus": [2], "backend": ["mpi", "gloo"]},
                            "include": [{"gpus": 1, "backend": "self"}])")
                  .empty())
      << "a backend borrows the base of self";
  EXPECT_TRUE(missing_in(R"("fixed": {"backend": "mpi"},
                            "zip": {"gpus": [1, 2], "batch_per_replica": [64, 32]})")
                  .empty())
      << "the work may depend on the replicas";
  EXPECT_EQ(missing_in(R"("fixed": {"backend": "mpi"},
                          "zip": {"gpus": [1, 2], "precision": ["fp32", "bf16"]})")
                .size(),
            1U);
}

TEST(Bases, AStudyOfSettingsNeedsNone) {
  EXPECT_TRUE(missing_in(R"("fixed": {"backend": "mpi", "gpus": 2}, "axes": {"bucket_mb": [1, 8]})")
                  .empty());
}

// Fewer runs are too few to check intervals by: the reports of our own specs would say so.
TEST(Bases, EverySpecThatWeShipHasThemAndRunsEnough) {
  int specs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PACELINE_SOURCE_DIR "/sweeps")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    ++specs;
    for (const char* device : {"cpu", "cuda"}) {
      Spec spec = read_spec(entry.path());
      if (!spec.fixed.find("device")) spec.fixed.set("device", std::string(device));
      EXPECT_GE(spec.repeats, 5);
      const Expansion expansion = expand(spec, 48, Unbuilt::keep);
      const auto missing = missing_bases(expansion.points);
      EXPECT_TRUE(missing.empty()) << missing.front();
    }
  }
  EXPECT_GE(specs, 11);
}

TEST(Bases, OnGpusATasksCpusCount) {
  EXPECT_TRUE(missing_in(R"("fixed": {"backend": "mirrored", "device": "cuda"},
                            "axes": {"gpus": [1, 2], "cpus_per_task": [4]})")
                  .empty());
  const Expansion held = make_expansion(R"("fixed": {"device": "cuda"},
                                         "axes": {"gpus": [1, 4], "backend": ["mirrored", "mpi"]})");
  EXPECT_TRUE(missing_bases(held.points).empty()) << "held fixed for a task";
  EXPECT_EQ(held.points[0].layout.cpus_per_task, 8);
  EXPECT_EQ(held.points[3].layout.cpus_per_task, 2);
}

}  // namespace
}  // namespace paceline
