#include <gtest/gtest.h>

#include "engine/launch/topology.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

void expect_plan(const ThreadPlan& plan, int compute, int input, int comm) {
  EXPECT_EQ(plan.compute, compute);
  EXPECT_EQ(plan.input, input);
  EXPECT_EQ(plan.comm, comm);
}

TEST(PlanThreads, ComputeTakesTheRest) {
  expect_plan(plan_threads(1, {}), 1, 0, 0);
  expect_plan(plan_threads(4, {}), 4, 0, 0);
  expect_plan(plan_threads(4, {{}, 1, 1}), 2, 1, 1);
  expect_plan(plan_threads(4, {2, {}, 1}), 2, 0, 1);
}

TEST(PlanThreads, MoreThreadsThanCpusAreRefused) {
  EXPECT_ERROR(plan_threads(4, {3, 1, 1}), usage,
               "3 compute + 1 input + 1 communication threads on 4 CPUs a replica; use fewer "
               "threads, or give each replica 5 CPUs");
  EXPECT_ERROR(plan_threads(1, {{}, {}, 1}), usage, "give each replica 2 CPUs");
  EXPECT_ERROR(plan_threads(2, {0, {}, {}}), usage, "compute threads 0");
  EXPECT_ERROR(plan_threads(2, {{}, -1, {}}), usage, "input threads -1");
  EXPECT_ERROR(plan_threads(0, {}), usage, "CPUs per replica 0");
}

TEST(CheckMask, FittingReplicasPass) {
  EXPECT_NO_THROW(check_mask({0, 1, 2, 3}, 2, 2, false));
  EXPECT_NO_THROW(check_mask({7}, 1, 1, false));
}

TEST(CheckMask, NarrowMaskNamesHowToWidenIt) {
  expect_error(ErrorKind::usage,
               {"the affinity mask has 1 (7)", "--bind-to none", "--map-by slot:PE=4",
                "srun --cpus-per-task=4"},
               [] { check_mask({7}, 1, 4, false); });
  // Threads of one replica are never oversubscribed.
  EXPECT_ERROR(check_mask({0, 1}, 1, 4, true), usage, "has 2 (0-1)");
}

TEST(CheckMask, MoreReplicasThanCpusNeedOversubscribe) {
  EXPECT_ERROR(
      check_mask({0, 1}, 4, 1, false), usage,
      "4 replicas of 1 CPU each on 2 usable CPUs (0-1); use fewer, or add --oversubscribe");
  EXPECT_NO_THROW(check_mask({0, 1}, 4, 1, true));
}

}  // namespace
}  // namespace paceline
