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
    outcome_.each_rank = {{.ready_batches = 0.5}};
    facts_.cards = {{.host = "n1", .cpus = "0-3"}};
  }
  RunRecord record() const { return make_record(request_, facts_, outcome_); }

  RunRequest request_;
  RunFacts facts_;
  TrainingOutcome outcome_;
};

TEST_F(OutcomeRecord, CountsInputOfEncodedImagesOnly) {
  EXPECT_FALSE(record().input.counts);
  facts_.decodes = true;
  EXPECT_EQ(record().input.counts.value().decoded, 7);
}

TEST_F(OutcomeRecord, SaysOfARankWhatItMeasuredAndWhereItRan) {
  outcome_.ranks[0].steps[0].total = 2;
  const RankFacts rank = record().each_rank->at(0);
  EXPECT_EQ(rank.ready_batches, 0.5);
  EXPECT_EQ(rank.host, "n1");
  EXPECT_EQ(rank.affinity, "0-3");
  EXPECT_EQ(rank.step_seconds.value().p50, 2);
}

TEST_F(OutcomeRecord, HasCheckpointsOfRunsThatWroteOrResumed) {
  EXPECT_FALSE(*record().checkpoints);
  outcome_.checkpoints.failed = 1;
  EXPECT_TRUE(*record().checkpoints);
  outcome_.checkpoints = {.resumed_after_steps = 3};
  outcome_.resumed = true;
  EXPECT_EQ(record().checkpoints->value().resumed_after_steps, 3);
}

}  // namespace
}  // namespace paceline
