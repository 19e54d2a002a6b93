#include "engine/comm/checks/stall_monitor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "engine/comm/wrappers/recorded/recorded_communicator.h"
#include "engine/failure/flight_reader.h"
#include "tests/support/communicators.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_stream.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// A stall monitor whose process does not end.
class Watched : public testing::Test {
 protected:
  StallMonitor::Setup setup(double warn, double abort, double grace) {
    StallMonitor::Setup setup;
    setup.deadlines.warn_seconds = warn;
    setup.deadlines.abort_seconds = abort;
    setup.grace_seconds = grace;
    setup.on_fatal_error = [this](const Error& error) { words_ = error.what(); };
    setup.exit = [this](int code) { code_ = code; };
    return setup;
  }

  std::shared_ptr<FlightRing> ring(int rank = 0) {
    return std::make_shared<FlightRing>(FlightRing::Identity{rank, 2, 0, "n", "a"}, std::nullopt);
  }

  int code_within(std::chrono::milliseconds time) const {
    for (auto left = time; left > 0ms && code_ == 0; left -= 5ms) std::this_thread::sleep_for(5ms);
    return code_;
  }

  std::string words_;  // before code_
  std::atomic<int> code_{0};
};

TEST_F(Watched, AWaitThatNobodyEndsIsEnded) {
  const auto one = ring();
  one->note_step(417);
  one->enter(one->queue(FlightKind::all_reduce, "bucket 0", 8));
  testing::internal::CaptureStderr();
  {
    StallMonitor stall_monitor(setup(0.05, 0.5, 1));
    stall_monitor.watch({one});
    EXPECT_EQ(code_within(30s), 72);
  }
  expect_parts(testing::internal::GetCapturedStderr(), {"warning: rank 0 has waited"});
  expect_parts(words_, {"rank 0: step 417, bucket 0: has waited"});
}

TEST_F(Watched, ShortWaitsAreLeftAlone) {
  const auto one = ring();
  StallMonitor stall_monitor(setup(10, 20, 0.1));
  stall_monitor.watch({one});
  one->enter(one->queue(FlightKind::all_reduce, "bucket 0", 8));
  EXPECT_EQ(code_within(300ms), 0);
}

TEST_F(Watched, BeforeTheFirstStepHasEndedTheDeadlineIsLonger) {
  const auto settled = std::make_shared<std::atomic<bool>>(false);
  const auto one = ring();
  one->enter(one->queue(FlightKind::barrier, "barrier", 0));
  StallMonitor stall_monitor(setup(60, 0.1, 0.1));
  stall_monitor.settle_by(settled);
  stall_monitor.watch({one});
  EXPECT_EQ(code_within(500ms), 0);
  *settled = true;
  EXPECT_EQ(code_within(30s), 72);
}

TEST_F(Watched, AnAnnouncedEndComesWithItsOwnCause) {
  StallMonitor stall_monitor(setup(10, 20, 0.3));
  stall_monitor.expect_end(Error(ErrorKind::peer_lost, "rank 3 gave up"));
  stall_monitor.expect_end(Error(ErrorKind::input, "bad file"));
  stall_monitor.expect_end(Error(ErrorKind::internal, "a later one"));
  EXPECT_EQ(code_within(30s), 65);
  EXPECT_EQ(words_, "bad file");
}

TEST_F(Watched, LastWordsThatStickAreLeftUnsaid) {
  // The thread that says them is detached, and may outlive this test.
  const auto free = std::make_shared<std::atomic<bool>>(false);
  auto stuck = setup(10, 20, 0.1);
  stuck.on_fatal_error = [free](const Error&) {
    while (!*free) std::this_thread::sleep_for(5ms);
  };
  {
    StallMonitor stall_monitor(stuck);
    stall_monitor.expect_end(Error(ErrorKind::peer_lost, "gone"));
    EXPECT_EQ(code_within(60s), 71);
  }
  *free = true;
}

TEST_F(Watched, ACallThatDoesNotReturnReportsItsCure) {
  StallMonitor stall_monitor(setup(10, 0.1, 0.1));
  const StallMonitor::Call call(&stall_monitor, "connecting the ranks by NCCL",
                                "set NCCL_SOCKET_IFNAME");
  EXPECT_EQ(code_within(30s), 72);
  expect_parts(words_, {"connecting the ranks by NCCL: has waited", "; set NCCL_SOCKET_IFNAME"});
  const StallMonitor::Call unwatched(nullptr, "anything", "");
}

// Two replicas of one process, of which one does not come.
TEST(Recorded, KnowsWhoCameAndWhoDidNot) {
  const Scratch scratch;
  const auto recording = std::make_shared<Recording>();
  Membership membership;
  membership.replicas_here = 2;
  membership.deadlines = {10, 0.2};
  membership.deadlines.settled = {recording, &recording->settled};
  membership.deadlines.start_seconds = 30;
  auto plain = connect_threads<ThreadCommunicator>(membership);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < 2; ++rank) {
    recording->rings.push_back(
        std::make_shared<FlightRing>(FlightRing::Identity{rank, 2, 0, "n", "a"}, scratch.path()));
    const auto at = static_cast<std::size_t>(rank);
    all.push_back(std::make_unique<RecordedCommunicator>(std::move(plain[at]), recording, at));
  }
  const auto replica = [&](std::size_t rank) {
    InlineLane lane;
    std::vector<float> data(100, 1.0F);
    for (std::uint64_t step = 1; step <= 2; ++step) {
      all[rank]->supervision().note_step(step);
      all[rank]->all_reduce(data.data(), data.size(), DType::f32, lane, "bucket 0");
    }
    EXPECT_EQ(data[99], 4.0F);
    all[rank]->barrier();
    if (rank == 1) return;
    expect_error(ErrorKind::stall, {"rank 1 did not come within 0.2 s", "bucket 1"}, [&] {
      all[rank]->all_reduce(data.data(), data.size(), DType::f32, lane, "bucket 1");
    });
  };
  std::thread other(replica, 1);
  replica(0);
  other.join();
  EXPECT_TRUE(recording->settled);
  const auto flights = read_flights(scratch.path());
  ASSERT_EQ(flights.size(), 2U);
  EXPECT_EQ(flights[0].entered, 4U);
  EXPECT_EQ(flights[1].entered, 3U);
  EXPECT_EQ(flights[0].last_entered()->state, FlightState::started);
  EXPECT_EQ(flights[1].last_entered()->label, "barrier");
  EXPECT_EQ(flights[1].last_entered()->step, 2U);
  EXPECT_EQ(flights[0].recent[0].bytes, 400U);
}

// Sums that take until they are let go.
class Slow final : public IdleCommunicator {
 public:
  explicit Slow(std::atomic<bool>& free) : IdleCommunicator(2), free_(free) {}
  void all_reduce(void*, std::size_t, DType, Lane& lane, std::string_view) override {
    lane.submit([free = &free_] {
      while (!*free) std::this_thread::sleep_for(1ms);
    });
  }

 private:
  std::atomic<bool>& free_;
};

TEST(Recorded, AStreamsSumsEndWhereTheStreamIsSeenToHaveReachedThem) {
  const Scratch scratch;
  std::atomic<bool> free{false};
  const auto recording = std::make_shared<Recording>();
  recording->rings.push_back(
      std::make_shared<FlightRing>(FlightRing::Identity{0, 2, 0, "n", "a"}, scratch.path()));
  RecordedCommunicator all(std::make_unique<Slow>(free), recording, 0);
  StreamLane stream;
  const auto sum = [&](const char* label) {
    all.all_reduce(nullptr, 1, DType::f32, stream, label);
  };
  const auto states = [&] {
    std::vector<FlightState> found;
    const Flight flight = read_flights(scratch.path()).front();
    for (const Collective& one : flight.recent) found.push_back(one.state);
    return found;
  };
  sum("bucket 0");
  sum("bucket 1");
  EXPECT_EQ(states(), (std::vector<FlightState>(2, FlightState::started)));
  EXPECT_FALSE(recording->rings[0]->wait());
  {
    const StreamWait wait(all, "the steps before");
    EXPECT_EQ(recording->rings[0]->wait()->label, "the steps before");
    free = true;
    stream.drain();
  }
  sum("bucket 0");
  EXPECT_EQ(states(), (std::vector<FlightState>{FlightState::ended, FlightState::ended,
                                                FlightState::started}));
  EXPECT_EQ(recording->rings[0]->entered(), 3U);
  stream.drain();
}

}  // namespace
}  // namespace paceline
