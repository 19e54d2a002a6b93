#include <gtest/gtest.h>

#include "results/names.h"
#include "results/parameters.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(Synonyms, AGpuIsTheDeviceCuda) {
  EXPECT_EQ(to_text(checked_value("device", std::string("gpu"), "here")), "cuda");
  EXPECT_EQ(find_name("device", "gpu").name, "cuda");
}

TEST(Synonyms, WordsOfOtherToolsLeadToOurs) {
  EXPECT_EQ(find_replacement("axis", "lr"), "use learning_rate");
  EXPECT_EQ(find_replacement("option", "--lr"), "use --learning-rate");
  EXPECT_EQ(find_replacement("option", "--Batch-Size"),
            "use --batch-per-replica, or --global-batch");
  EXPECT_EQ(find_replacement("backend", "MirroredStrategy"), "use mirrored");
  EXPECT_EQ(find_replacement("backend", "lr"), std::nullopt) << "an axis is not a backend";
  EXPECT_EQ(find_replacement("axis", "gpus"), std::nullopt);
  expect_error(ErrorKind::usage, {"unknown backend", "use mpi between CPUs or nccl between GPUs"},
               [] { find_name("backend", "horovod"); });
}

// Every axis that an answer names is one.
TEST(Synonyms, AnswersNameAxesThatAre) {
  for (const char* word :
       {"lr", "batch_size", "world_size", "nproc_per_node", "nnodes", "cpus", "threads",
        "num_workers", "num_epochs", "max_steps", "dtype", "amp", "bucket_cap_mb"}) {
    const auto answer = find_replacement("axis", word);
    ASSERT_TRUE(answer) << word;
    const std::string axis = answer->substr(4, answer->find_first_of(" ,:", 4) - 4);
    EXPECT_NE(find_parameter(axis), nullptr) << word << ": " << *answer;
    EXPECT_EQ(find_parameter(word), nullptr) << word << " is an axis of its own";
  }
}

}  // namespace
}  // namespace paceline
