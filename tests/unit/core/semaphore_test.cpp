#include <gtest/gtest.h>

#include <atomic>

#include "engine/core/lane.h"
#include "tests/support/on_threads.h"

namespace paceline {
namespace {

TEST(Semaphore, LetSoManyInAndWakeWhoWaits) {
  constexpr int kThreads = 4, kRounds = 20000;
  for (const int permitted : {1, 2}) {
    Semaphore permits(permitted);
    std::atomic<int> inside = 0, most = 0, done = 0;
    on_threads(kThreads, [&](int) {
      for (int round = 0; round < kRounds; ++round) {
        const Permit permit(permits);
        int known = most;
        const int now = ++inside;
        while (known < now && !most.compare_exchange_weak(known, now)) {
        }
        --inside;
      }
      ++done;
    });
    EXPECT_EQ(done, kThreads);
    EXPECT_LE(most, permitted);
  }
}

}  // namespace
}  // namespace paceline
