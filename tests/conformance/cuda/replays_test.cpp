// Graphs of parts and of whole steps, on a host that plays a GPU and keeps the rules of capture.
#include "engine/device/cuda/replays.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

class ReplaysTest : public testing::Test {
 protected:
  void TearDown() override { drain(); }
  void drain() {
    comm_.drain();
    compute_.drain();
  }
  // Notes a number when the lane comes to it.
  void add(StreamLane& lane, int number) {
    auto* item = new Item{&seen_, number};
    items_.emplace_back(item);
    runtime_->host_task([](void* data) { static_cast<Item*>(data)->note(); }, item, lane.stream());
  }
  struct Item {
    std::vector<int>* seen;
    int number;
    void note() const { seen->push_back(number); }
  };

  // What a step with a sum beside it looks like.
  void queue_step() {
    if (!compute_.replays()) add(compute_, 1);
    comm_.follow(compute_);
    begin_ = comm_.mark();
    if (!comm_.replays()) add(comm_, 2);
    end_ = comm_.mark();
    compute_.after(end_);
    EXPECT_FALSE(comm_.in_graph() && comm_.reached(end_));
    if (!compute_.replays()) add(compute_, 3);
  }

  HostCounts counts_;
  std::unique_ptr<Runtime> runtime_ = make_host_runtime(&counts_);
  StreamLane compute_{*runtime_}, comm_{*runtime_};
  Replays replays_{*runtime_, compute_, comm_, {}};
  Marker begin_, end_;
  std::vector<int> seen_;
  std::vector<std::unique_ptr<Item>> items_;
};

TEST_F(ReplaysTest, AStepOverTwoLanesIsOneGraphWithItsMarkers) {
  Marker before;
  for (int step = 1; step <= 6; ++step) {
    seen_.clear();
    replays_.run_step({1}, [&] { queue_step(); });
    drain();
    EXPECT_EQ(seen_, (std::vector<int>{1, 2, 3})) << step;
    EXPECT_TRUE(comm_.reached(end_));
    EXPECT_GT(comm_.seconds_between(begin_, end_), 0) << step;
    if (step > 1) {
      EXPECT_GT(comm_.seconds_between(before, begin_), 0) << step;
    }
    before = end_;
  }
  EXPECT_EQ(counts_.captures, 1U);
  EXPECT_EQ(counts_.graph_launches, 4U);
}

// The emulated GPU refuses to be asked for events that a graph has yet to record.
TEST_F(ReplaysTest, MarkersInAGraphAreReachedOnceItsLaunchIs) {
  for (int step = 1; step <= 5; ++step) {
    replays_.run_step({1}, [&] { queue_step(); });
    if (!comm_.reached(end_)) comm_.wait_for(end_);
    EXPECT_TRUE(comm_.reached(end_)) << step;
  }
}

TEST_F(ReplaysTest, PartsWithinAStepAreItsOwn) {
  for (int step = 1; step <= 5; ++step) {
    seen_.clear();
    replays_.run_step({1}, [&] {
      replays_.run("a part", {2}, [&] { add(compute_, 7); });
      queue_step();
    });
    drain();
    EXPECT_EQ(seen_, (std::vector<int>{7, 1, 2, 3})) << step;
  }
  EXPECT_EQ(counts_.captures, 1U);
}

TEST_F(ReplaysTest, WhatCannotBeCapturedIsAnErrorWithACure) {
  const auto fails = [&](const std::function<void()>& queue, const char* why) {
    Replays replays(*runtime_, compute_, comm_, {});
    for (int step = 1; step <= 2; ++step) replays.run_step({1}, queue);
    expect_error(ErrorKind::internal,
                 {"a step: the step cannot be captured: ", why, "--no-step-graph"},
                 [&] { replays.run_step({1}, queue); });
    drain();                                        // both lanes write what was seen
    replays_.run_step({1}, [&] { queue_step(); });  // the lanes are as before
  };
  const auto part_ways = [&] {
    comm_.after(compute_.mark());
    add(comm_, 1);
  };
  fails(part_ways, "has not come back");
  fails([&] { compute_.submit([] {}); }, "work on the host within a step");
  fails([&] { compute_.drain(); }, "a wait of the host within a step");
  const Marker earlier = comm_.mark();
  fails([&] { compute_.after(earlier); }, "came before its capture");
  fails([&] { runtime_->device_memory(8); }, "takes memory while a stream is captured");
}

TEST_F(ReplaysTest, AStepMustGiveTheMarkersOfItsCapture) {
  bool more = false;
  const auto queue = [&] {
    queue_step();
    if (more) compute_.mark();
  };
  for (int step = 1; step <= 4; ++step) replays_.run_step({1}, queue);
  more = true;
  expect_error(ErrorKind::internal, {"other markers than when it was captured"},
               [&] { replays_.run_step({1}, queue); });
}

TEST_F(ReplaysTest, WithoutStepGraphsPartsAreGraphs) {
  Replays replays(*runtime_, compute_, comm_, {true, false});
  for (int step = 1; step <= 4; ++step) {
    replays.run_step({1}, [&] { replays.run("a part", {2}, [&] { add(compute_, 7); }); });
  }
  drain();
  EXPECT_EQ(counts_.graph_launches, 2U);
  EXPECT_EQ(seen_, std::vector<int>(4, 7));
}

}  // namespace
}  // namespace paceline::cuda
