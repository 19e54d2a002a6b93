#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/train/checkpoint/manager.h"
#include "tests/support/communicators.h"

namespace paceline {
namespace {

struct Heard {
  std::size_t stop = 0, save = 0, asked = 0;  // the step at which; how often
};

// Each rank trains steps of its own length; rank r requests from step requests[r] on.
std::vector<Heard> run(const std::vector<std::size_t>& stops, std::size_t save_of_first) {
  std::vector<Heard> heard(stops.size());
  on_replicas(static_cast<int>(stops.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    RankVote vote(communicator);
    for (std::size_t step = 1; step < 400 && heard[rank].stop == 0; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(rank + 1));
      if (!vote.is_due(step)) continue;
      ++heard[rank].asked;
      const PendingRequests all =
          vote.ask(step, {step >= stops[rank], rank == 0 && step >= save_of_first});
      if (all.save && heard[rank].save == 0) heard[rank].save = step;
      if (all.stop) heard[rank].stop = step;
    }
  });
  return heard;
}

TEST(RankVote, ARequestOfOneReachesAllAtOneStep) {
  const auto heard = run({1000, 150, 1000}, 70);
  EXPECT_GE(heard[0].stop, 150U);
  EXPECT_GE(heard[0].save, 70U);
  EXPECT_LE(heard[0].save, heard[0].stop);
  for (const Heard& one : heard) {
    EXPECT_EQ(one.stop, heard[0].stop);
    EXPECT_EQ(one.save, heard[0].save);
    EXPECT_EQ(one.asked, heard[0].asked);
  }
  EXPECT_LT(heard[0].asked, heard[0].stop / 4);  // not at every step
}

}  // namespace
}  // namespace paceline
