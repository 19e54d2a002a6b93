#include "engine/comm/checks/call_timeout.h"

#include <gtest/gtest.h>

#include <atomic>

namespace paceline {
namespace {

using namespace std::chrono_literals;

TEST(CallTimeout, ActsOnceWhereACallOutlastsTheDeadline) {
  std::atomic<int> expired{0};
  std::string label;
  {
    CallTimeout call_timeout({0.05, 0.1}, [&](const std::string& what) {
      label = what;
      ++expired;
    });
    const CallTimeout::Call call(call_timeout, "bucket 3");
    for (int i = 0; i < 1000 && expired == 0; ++i) std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(expired, 1);
  EXPECT_EQ(label, "bucket 3");
}

TEST(CallTimeout, ShortCallsAndPausesAreLeftAlone) {
  std::atomic<int> expired{0};
  CallTimeout call_timeout({60, 120}, [&](const std::string&) { ++expired; });
  for (int i = 0; i < 100; ++i) const CallTimeout::Call call(call_timeout, "bucket");
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(expired, 0);
}

}  // namespace
}  // namespace paceline
