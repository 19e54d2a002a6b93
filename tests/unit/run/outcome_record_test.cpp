#include "run/outcome_record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "analysis/screen/screen.h"
#include "tests/support/scratch.h"

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

// One that cannot be read stops no run.
TEST_F(OutcomeRecord, HasTheScreenBeforeIt) {
  const Scratch scratch;
  MachineScreen screen;
  screen.schema = 1;
  screen.started_at = "2026-11-28T01:00:00Z";
  for (int i = 0; i < 8; ++i) {
    screen.nodes.push_back({"n" + std::to_string(i), "A", ""});
    const double rate = (i == 3 ? 0.5 : 1) + 0.01 * (i % 3);
    screen.devices.push_back({i, "CPUs 0-3", "A", {{"memory copies", {rate, rate, rate}}}, {}});
  }
  std::ofstream(scratch / "screen.json") << to_text(screen);
  EXPECT_FALSE(record().provenance.screened);
  setenv("PACELINE_SCREEN", scratch.path().c_str(), 1);
  const ScreenedFacts facts = record().provenance.screened.value();
  EXPECT_EQ(facts.started_at, screen.started_at);
  EXPECT_EQ(facts.slow, fact::Texts{"CPUs 0-3 of n3"});
  EXPECT_EQ(facts.hosts, fact::Texts{"n3"});
  ASSERT_EQ(facts.sizes.size(), 1U);
  EXPECT_NE(facts.sizes[0].find("% slower in memory copies"), std::string::npos);
  std::ofstream(scratch / "screen.json") << "{";
  EXPECT_FALSE(record().provenance.screened);
  unsetenv("PACELINE_SCREEN");
}

}  // namespace
}  // namespace paceline
