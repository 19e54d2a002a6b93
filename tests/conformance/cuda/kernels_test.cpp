// Kernels by themselves, on the host, in shapes that no network here gives them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/device/cuda/kernels/all.h"
#include "tests/support/host_cuda/block.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

// Whole numbers, of which every sum here is exact.
std::vector<float> numbers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed) * 13) % 11) - 5;
  }
  return values;
}

// Values in memory of the device, which the test reads and writes as its own.
template <typename T>
class OnDevice {
 public:
  OnDevice(Runtime& runtime, const std::vector<T>& values)
      : memory_(runtime.device_memory(values.size() * sizeof(T))), count_(values.size()) {
    std::memcpy(memory_.data(), values.data(), memory_.bytes());
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> values() const { return {data(), data() + count_}; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  Memory memory_;
  std::size_t count_;
};

// The played GPU itself: all threads of a block wait at a barrier, or none.
TEST(PlayedKernels, ABarrierThatOnlySomeThreadsKnowIsAnError) {
  HostBlock block;
  std::vector<int> passed;
  block.run(3, [&](unsigned thread) {
    passed.push_back(static_cast<int>(thread));
    block.sync();
    passed.push_back(10 + static_cast<int>(thread));
  });
  EXPECT_EQ(passed, (std::vector<int>{0, 1, 2, 10, 11, 12}));
  const auto uneven = [&](unsigned thread) {
    if (thread == 1) block.sync();
  };
  EXPECT_THROW(block.run(3, uneven), std::logic_error);
  block.run(2, [&](unsigned) { block.sync(); });  // as if nothing had been
}

// Rows and splits from fewer than are fetched at once to several times as many, with a rest.
TEST(PlayedKernels, ChannelsAreSummedOverRowsAndSplitsOfEveryNumber) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  for (const int channels : {8, 12, 200}) {
    for (const std::size_t rows : {std::size_t{3}, std::size_t{700}, std::size_t{20011}}) {
      for (const unsigned splits : {1U, 5U, 131U}) {
        const ChannelTiling tiling{rows, channels, splits};
        const auto values = numbers(rows * static_cast<std::size_t>(channels), channels);
        std::vector<float> expected(static_cast<std::size_t>(channels), 0);
        for (std::size_t i = 0; i < values.size(); ++i) expected[i % expected.size()] += values[i];
        const OnDevice<float> dy(*runtime, values),
            db(*runtime, std::vector<float>(expected.size(), -1)),
            partials(*runtime, std::vector<float>(splits * expected.size()));
        const OnDevice<unsigned> finished(*runtime, std::vector<unsigned>(tiling.tiles()));
        using Kernel = ChannelSums<BiasGradient<float>>;
        runtime->launch(
            Kernel{tiling, partials.data(), finished.data(), {dy.data(), db.data(), channels}},
            {tiling.tiles() * splits, ChannelTiling::kThreads, Kernel::shared_bytes()}, stream);
        runtime->synchronize_stream(stream);
        EXPECT_EQ(db.values(), expected)
            << channels << " channels, " << rows << " rows, " << splits;
        EXPECT_EQ(finished.values(), std::vector<unsigned>(tiling.tiles(), 0));
      }
    }
  }
  runtime->destroy_stream(stream);
}

// What is normalised and added to itself has one gradient, to which both ways add.
TEST(PlayedKernels, APlaneNormalisedAndAddedToItselfHasOneGradient) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  const int channels = 8;
  const std::size_t count = 8 * 37;
  const std::vector<float> before = numbers(count, 3);
  const OnDevice<float> x(*runtime, numbers(count, 1)), dy(*runtime, numbers(count, 2)),
      gradient(*runtime, before);
  const OnDevice<float> dy_factor(*runtime, std::vector<float>(8, 2)),
      x_factor(*runtime, std::vector<float>(8, 3)), constant(*runtime, std::vector<float>(8, 1));
  NormState state{};
  state.dy_factor = dy_factor.data();
  state.x_factor = x_factor.data();
  state.constant = constant.data();
  runtime->launch(NormGradient<float, false>{x.data(),
                                             nullptr,
                                             dy.data(),
                                             nullptr,
                                             gradient.data(),
                                             gradient.data(),
                                             count,
                                             0,
                                             channels,
                                             state,
                                             {},
                                             true,
                                             true},
                  {2, 64, 0}, stream);
  runtime->synchronize_stream(stream);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(gradient[i], before[i] + 2 * dy[i] + 3 * x[i] + 1 + dy[i]) << i;
  }
  runtime->destroy_stream(stream);
}

// Rows of a loss, from fewer than a block has threads to several times as many.
TEST(PlayedKernels, TheLossOfEveryNumberOfRowsIsTheirSum) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  for (const int rows : {1, 100, 300}) {
    const int classes = 7;
    const auto count = static_cast<std::size_t>(rows) * classes;
    const std::vector<float> x = numbers(count, rows);
    std::vector<std::int32_t> labels;
    std::size_t correct = 0, among_five = 0;
    double loss = 0;
    for (int r = 0; r < rows; ++r) {
      labels.push_back(r % classes);
      const float* row = x.data() + static_cast<std::size_t>(r) * classes;
      double total = 0;
      int larger = 0;
      for (int j = 0; j < classes; ++j) {
        total += std::exp(static_cast<double>(row[j]));
        larger +=
            row[j] > row[labels.back()] || (row[j] == row[labels.back()] && j < labels.back());
      }
      loss += std::log(total) - static_cast<double>(row[labels.back()]);
      correct += larger == 0;
      among_five += larger < 5;
    }
    const OnDevice<float> logits(*runtime, x), p(*runtime, std::vector<float>(count)),
        row_loss(*runtime, std::vector<float>(labels.size()));
    const OnDevice<std::int32_t> labels_there(*runtime, labels);
    const OnDevice<std::uint8_t> row_correct(*runtime, std::vector<std::uint8_t>(labels.size()));
    const OnDevice<double> sums(*runtime, {0, 0, 0});
    const OnDevice<unsigned> finished(*runtime, {0});
    constexpr unsigned kThreads = 128;
    for (int twice = 0; twice < 2; ++twice) {  // sums are added to
      runtime->launch(
          SoftmaxLoss{logits.data(), labels_there.data(), p.data(), row_loss.data(),
                      row_correct.data(), sums.data(), finished.data(), rows, classes, 0, false},
          {static_cast<unsigned>(rows), kThreads, SoftmaxLoss::shared_bytes(kThreads)}, stream);
    }
    runtime->synchronize_stream(stream);
    EXPECT_NEAR(sums[0], 2 * loss, 1e-5 * loss) << rows;
    EXPECT_EQ(sums[1], 2 * static_cast<double>(correct)) << rows;
    EXPECT_EQ(sums[2], 2 * static_cast<double>(among_five)) << rows;
    EXPECT_EQ(finished[0], 0U);
  }
  runtime->destroy_stream(stream);
}

}  // namespace
}  // namespace paceline::cuda
