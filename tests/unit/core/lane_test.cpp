#include "engine/core/lane.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/support/allocations.h"

namespace paceline {
namespace {

TEST(ThreadLane, RunsWorkInOrderOnAnotherThread) {
  ThreadLane lane;
  std::vector<int> seen;
  std::thread::id runner;
  lane.submit([&runner] { runner = std::this_thread::get_id(); });
  for (int i = 0; i < 1000; ++i) lane.submit([&seen, i] { seen.push_back(i); });  // over the ring
  lane.drain();
  EXPECT_NE(runner, std::this_thread::get_id());
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(ThreadLane, StartsWithItsFirstTask) {
  std::atomic<int> order{0}, started{0};
  ThreadLane lane([&order, &started] { started = ++order; });
  lane.submit([&order] { ++order; });
  lane.drain();
  EXPECT_EQ(started, 1);
}

TEST(Lane, MarkersOrderWorkAcrossLanes) {
  ThreadLane compute, comm;
  std::atomic<bool> gate{false};
  std::atomic<int> gradient{0}, seen{0}, updated{0};
  compute.submit([&gate] { gate.wait(false); });
  compute.submit([&gradient] { gradient = 7; });
  const Marker ready = compute.mark();
  comm.after(ready);
  comm.submit([&gradient, &seen] { seen = gradient.load(); });
  const Marker reduced = comm.mark();
  compute.after(reduced);
  compute.submit([&seen, &updated] { updated = seen + 1; });
  EXPECT_FALSE(compute.reached(ready));
  EXPECT_FALSE(comm.reached(reduced));
  gate = true;
  gate.notify_all();
  compute.drain();
  EXPECT_TRUE(compute.reached(ready));
  EXPECT_TRUE(comm.reached(reduced));
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(updated, 8);
}

TEST(ThreadLane, KeepsAnErrorUntilDrainAndDropsWhatFollows) {
  ThreadLane lane;
  std::atomic<bool> ran{false};
  lane.submit([] { throw std::runtime_error("bucket 2"); });
  lane.submit([&ran] { ran = true; });
  lane.wait_for(lane.mark());
  EXPECT_FALSE(ran);
  try {
    lane.drain();
    FAIL() << "the error was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "bucket 2");
  }
  lane.submit([&ran] { ran = true; });
  EXPECT_NO_THROW(lane.drain());
  EXPECT_TRUE(ran);
}

TEST(ThreadLane, DestructorFinishesQueuedWork) {
  std::atomic<int> done{0};
  {
    ThreadLane lane;
    for (int i = 0; i < 100; ++i) lane.submit([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(ThreadLane, QueuingNeverAllocates) {
  ThreadLane lane, other;
  lane.drain();
  other.drain();
  std::atomic<int> done{0};
  const long before = allocations;
  for (int i = 0; i < 600; ++i) {
    lane.submit([&done] { ++done; });
    other.after(lane.mark());
  }
  lane.drain();
  other.drain();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(done, 600);
}

TEST(InlineLane, RunsAtOnceAndWaitsForOtherLanes) {
  InlineLane here;
  ThreadLane there;
  int value = 0;
  std::atomic<int> slow{0};
  here.submit([&value] { value = 1; });
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(here.reached(here.mark()));
  there.submit([&slow] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slow = 1;
  });
  here.after(there.mark());
  EXPECT_EQ(slow, 1);
  EXPECT_THROW(here.submit([] { throw std::runtime_error("now"); }), std::runtime_error);
}

}  // namespace
}  // namespace paceline
