#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/core/lane.h"

namespace paceline {
namespace {

TEST(Semaphore, LetSoManyInAndWakeWhoWaits) {
  constexpr int kThreads = 4, kRounds = 20000;
  for (const int permitted : {1, 2}) {
    Semaphore permits(permitted);
    std::atomic<int> inside = 0, most = 0, done = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
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
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, kThreads);
    EXPECT_LE(most, permitted);
  }
}

}  // namespace
}  // namespace paceline
