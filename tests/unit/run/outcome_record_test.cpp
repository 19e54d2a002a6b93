#include "run/outcome_record.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

class OutcomeRecord : public testing::Test {
 protected:
  OutcomeRecord() {
    request_.workload = "mnist-mlp";
    outcome_.timing.epoch_seconds = {1};
    outcome_.quality.epochs.resize(1);
    outcome_.ranks.resize(1);
    outcome_.ranks[0].steps.resize(1);
    outcome_.input.counts = InputCounts{.decoded = 7};
    outcome_.input.ready_batches = {0.5};
  }
  RunRecord record() const { return make_record(request_, facts_, outcome_); }

  RunRequest request_;
  RunFacts facts_;
  TrainingOutcome outcome_;
};

TEST_F(OutcomeRecord, CountsInputOfEncodedImagesOnly) {
  EXPECT_FALSE(record().input.counts);
  EXPECT_EQ(record().input.ready_batches, std::vector<double>{0.5});
  facts_.decodes = true;
  EXPECT_EQ(record().input.counts.value().decoded, 7);
}

TEST_F(OutcomeRecord, HasCheckpointsOfRunsThatWroteOrResumed) {
  EXPECT_FALSE(record().checkpoints);
  outcome_.checkpoints.failed = 1;
  EXPECT_TRUE(record().checkpoints);
  outcome_.checkpoints = {.resumed_after_steps = 3};
  outcome_.resumed = true;
  EXPECT_EQ(record().checkpoints.value().resumed_after_steps, 3);
}

}  // namespace
}  // namespace paceline
