#include "run/outcome_record.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(OutcomeRecord, AProbeThatFoundNoRoomIsNotARateOfZero) {
  RunRequest request;
  request.workload = "mnist-mlp";
  TrainingOutcome outcome;
  outcome.epoch_seconds = {1};
  outcome.epochs.resize(1);
  outcome.ranks.resize(1);
  outcome.ranks[0].steps.resize(1);
  EXPECT_FALSE(make_record(request, {}, outcome).probe.flops_per_second);
  outcome.probe_flops_per_second = 1e12;
  outcome.probe_bytes_per_second = 1e11;
  EXPECT_EQ(make_record(request, {}, outcome).probe.flops_per_second, 1e12);
}

}  // namespace
}  // namespace paceline
