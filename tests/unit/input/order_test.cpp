#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/input/loading/stream.h"

namespace paceline {
namespace {

TEST(Order, IsAPermutationAndAPureFunction) {
  for (const std::size_t samples : {0UL, 1UL, 2UL, 1000UL}) {
    for (const std::size_t buffer : {0UL, 1UL, 10UL, 1000UL, 5000UL}) {
      const auto order = epoch_order(3, 4, samples, buffer);
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      std::vector<std::uint32_t> all(samples);
      std::iota(all.begin(), all.end(), 0U);
      EXPECT_EQ(sorted, all) << samples << " samples, buffer " << buffer;
      EXPECT_EQ(order, epoch_order(3, 4, samples, buffer));
    }
  }
}

TEST(Order, ChangesWithSeedAndEpoch) {
  const auto order = epoch_order(1, 0, 100, 0);
  EXPECT_NE(order, epoch_order(2, 0, 100, 0));
  EXPECT_NE(order, epoch_order(1, 1, 100, 0));
}

// Sample i of the file enters the buffer when i - buffer + 1 have left it, so it cannot be taken
// before place i - buffer + 1; a buffer of one is the file's order.
TEST(Order, ABufferHoldsSamplesBack) {
  const auto file_order = epoch_order(1, 0, 50, 1);
  EXPECT_TRUE(std::is_sorted(file_order.begin(), file_order.end()));
  const auto order = epoch_order(1, 0, 1000, 16);
  for (std::size_t place = 0; place < order.size(); ++place) {
    EXPECT_LT(order[place], place + 16) << "at place " << place;
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

// Every sample comes first equally often: 20 samples over 4000 epochs, 200 expected each.
TEST(Order, FirstPlaceIsUniform) {
  std::vector<int> counts(20);
  for (std::uint32_t epoch = 0; epoch < 4000; ++epoch) ++counts[epoch_order(9, epoch, 20, 0)[0]];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_LT(chi_squared, 43.8);  // 19 degrees of freedom, p = 0.001
}

TEST(Order, SlicesTileTheBatch) {
  for (const std::size_t count : {0UL, 1UL, 7UL, 64UL, 97UL}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      std::size_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = take_slice(count, rank, ranks);
        EXPECT_EQ(slice.begin, at);
        EXPECT_LE(slice.count,
                  (count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks));
        at += slice.count;
      }
      EXPECT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace paceline
