// Kernels by themselves, on the host, in shapes that no network here gives them.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/loss.h"
#include "engine/device/cuda/kernels/norm_pool.h"
#include "tests/conformance/cuda/on_device.h"
#include "tests/support/host_cuda/block.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

// The emulated GPU itself: all threads of a block wait at a barrier, or none.
TEST(EmulatedKernels, ABarrierThatOnlySomeThreadsKnowIsAnError) {
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
TEST(EmulatedKernels, ChannelsAreSummedOverRowsAndSplitsOfEveryNumber) {
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
TEST(EmulatedKernels, APlaneNormalisedAndAddedToItselfHasOneGradient) {
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

// Normalisation, ReLU and pooling in one pass, forward and backward, against loops over windows: of
// even and odd planes, of whole vectors of channels and not, with ties, NaN and windows without a
// positive element.
template <typename T>
class PooledNorm {
 public:
  PooledNorm(Runtime& runtime, Stream stream, const Window& window)
      : runtime_(runtime), stream_(stream), w_(window), inputs_(count(w_.in_height, w_.in_width)) {
    outputs_ = count(w_.out_height, w_.out_width);
  }

  void run() {
    std::vector<T> x, dy;
    for (std::size_t i = 0; i < inputs_; ++i) {
      x.push_back(from_float<T>(static_cast<float>(i * 7919 % 23) - 14));  // mostly negative
    }
    x[inputs_ / 2] = from_float<T>(NAN);
    for (std::size_t i = 0; i < outputs_; ++i) {
      dy.push_back(from_float<T>(static_cast<float>(i * 31 % 17) / 4 - 2));
    }
    find_expected(x, dy);
    const auto channels = static_cast<std::size_t>(w_.channels);
    const OnDevice<T> x_there(runtime_, x), dy_there(runtime_, dy), y(runtime_, dy),
        dx(runtime_, x);
    const OnDevice<std::uint8_t> chosen(runtime_, std::vector<std::uint8_t>(outputs_));
    const auto all = [&](float value) { return std::vector<float>(channels, value); };
    const OnDevice<float> one(runtime_, all(1)), zero(runtime_, all(0)), mean(runtime_, all(3)),
        x_factor(runtime_, all(0.5F)), sum(runtime_, all(0)), sum_x(runtime_, all(0)),
        partials(runtime_, std::vector<float>(2 * 2 * channels));
    NormState state{};
    state.mean = mean.data(), state.inverse = state.scale = one.data(), state.shift = zero.data();
    state.dy_factor = one.data(), state.constant = zero.data(), state.x_factor = x_factor.data();
    runtime_.launch(NormPool<T>{w_, x_there.data(), y.data(), chosen.data(), kSamples, state},
                    {2, 64, 0}, stream_);
    runtime_.launch(NormPoolGradient<T>{w_, x_there.data(), dy_there.data(), chosen.data(),
                                        dx.data(), kSamples - 1, kSamples, state, false},
                    {2, 64, 0}, stream_);
    // After the gradient, because sums set its factors.
    NormState of_sums = state;
    const OnDevice<float> factors(runtime_, all(0));
    of_sums.dy_factor = of_sums.x_factor = of_sums.constant = factors.data();
    NormParameters parameters{};
    parameters.beta_gradient = sum.data(), parameters.gamma_gradient = sum_x.data();
    const ChannelTiling tiling{outputs_ / channels, w_.channels, 2};
    const OnDevice<unsigned> finished(runtime_, std::vector<unsigned>(tiling.tiles()));
    using Sums = ChannelSums<NormPoolGradientSums<T>>;
    runtime_.launch(Sums{tiling,
                         partials.data(),
                         finished.data(),
                         {w_, x_there.data(), dy_there.data(), chosen.data(), inputs_ / channels,
                          of_sums, parameters}},
                    {tiling.tiles() * 2, ChannelTiling::kThreads, Sums::shared_bytes()}, stream_);
    runtime_.synchronize_stream(stream_);
    for (std::size_t i = 0; i < outputs_; ++i) {
      ASSERT_EQ(chosen[i], chosen_[i]) << i;
      ASSERT_TRUE(same(to_float(y[i]), largest_[i])) << i << ": " << to_float(y[i]);
    }
    for (std::size_t i = 0; i < inputs_; ++i) {
      const bool present = i < inputs_ / kSamples * (kSamples - 1);
      const float expected = to_float(from_float<T>(present ? dz_[i] + 0.5F * to_float(x[i]) : 0));
      ASSERT_TRUE(same(to_float(dx[i]), expected)) << i << ": " << to_float(dx[i]);
    }
    for (std::size_t c = 0; c < channels; ++c) {
      double of_dz = 0, of_product = 0;
      for (std::size_t i = c; i < inputs_; i += channels) {
        of_dz += static_cast<double>(dz_[i]);
        if (dz_[i] != 0) {
          of_product += static_cast<double>(dz_[i]) * (static_cast<double>(to_float(x[i])) - 3);
        }
      }
      EXPECT_EQ(static_cast<double>(sum[c]), of_dz) << c;
      if (!std::isnan(of_product)) {
        EXPECT_EQ(static_cast<double>(sum_x[c]), of_product) << c;
      }
    }
  }

 private:
  static constexpr std::size_t kSamples = 3;
  static bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }
  std::size_t count(int height, int width) const {
    return kSamples * static_cast<std::size_t>(height * width * w_.channels);
  }
  void find_expected(const std::vector<T>& x, const std::vector<T>& dy) {
    largest_.assign(outputs_, 0);
    chosen_.assign(outputs_, kNoPlace);
    dz_.assign(inputs_, 0);
    for (std::size_t i = 0; i < outputs_; ++i) {
      const int at = static_cast<int>(i) / w_.channels, of_plane = w_.out_height * w_.out_width;
      const int row = at % of_plane / w_.out_width * w_.stride - w_.padding;
      const int column = at % w_.out_width * w_.stride - w_.padding;
      std::size_t from = 0;
      for (int k = 0; k < w_.kernel * w_.kernel; ++k) {
        const int r = row + k / w_.kernel, c = column + k % w_.kernel;
        if (r < 0 || r >= w_.in_height || c < 0 || c >= w_.in_width) continue;
        const int element = ((at / of_plane * w_.in_height + r) * w_.in_width + c) * w_.channels +
                            static_cast<int>(i) % w_.channels;
        const float value = to_float(x[static_cast<std::size_t>(element)]);
        if (!is_chosen(value, largest_[i])) continue;
        largest_[i] = value;
        chosen_[i] = static_cast<std::uint8_t>(k);
        from = static_cast<std::size_t>(element);
      }
      if (chosen_[i] != kNoPlace) dz_[from] += to_float(dy[i]);
    }
  }

  Runtime& runtime_;
  Stream stream_;
  Window w_;
  std::size_t inputs_, outputs_ = 0;
  std::vector<float> largest_, dz_;
  std::vector<std::uint8_t> chosen_;
};

TEST(EmulatedKernels, PooledNormsAreThoseOfTheirWindows) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  const Window windows[] = {{8, 6, 4, 3, 3, 2, 1, 16}, {9, 5, 5, 3, 3, 2, 1, 8},
                            {7, 8, 4, 4, 3, 2, 1, 12}, {1, 1, 1, 1, 3, 2, 1, 8},
                            {8, 8, 4, 4, 2, 2, 0, 24}, {9, 9, 4, 4, 3, 2, 0, 5}};
  for (const Window& w : windows) {
    SCOPED_TRACE(std::to_string(w.in_height) + " x " + std::to_string(w.in_width) + " x " +
                 std::to_string(w.channels));
    PooledNorm<float>(*runtime, stream, w).run();
    PooledNorm<Bf16>(*runtime, stream, w).run();
    PooledNorm<Half>(*runtime, stream, w).run();
  }
  runtime->destroy_stream(stream);
}

// Of planes of any size: whole vectors, a rest, samples that are missing, gradients that are added
// to; in the host's double.
TEST(EmulatedKernels, GradientsOfNormsAreThoseOfTheirFactors) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  for (const int channels : {8, 24, 5}) {
    for (const bool adds : {false, true}) {
      for (const bool signs : {false, true}) {
        const std::size_t count = static_cast<std::size_t>(channels) * 61, missing = 27;
        const std::vector<float> x = numbers(count + missing, 1), dy = numbers(count + missing, 2),
                                 old = numbers(count + missing, 3);
        const std::vector<std::uint8_t> bits((count + missing) / 8 + 1, 0xB5);
        const OnDevice<float> x_there(*runtime, x), dy_there(*runtime, dy), dx(*runtime, old),
            skip(*runtime, old);
        const OnDevice<std::uint8_t> bits_there(*runtime, bits);
        std::vector<float> factor(static_cast<std::size_t>(channels));
        for (std::size_t c = 0; c < factor.size(); ++c) factor[c] = static_cast<float>(c % 4);
        const OnDevice<float> factors(*runtime, factor),
            twos(*runtime, std::vector<float>(factor.size(), 2));
        NormState state{};
        state.dy_factor = twos.data(), state.x_factor = factors.data();
        state.constant = factors.data();
        runtime->launch(NormGradient<float, false>{x_there.data(),
                                                   nullptr,
                                                   dy_there.data(),
                                                   signs ? bits_there.data() : nullptr,
                                                   dx.data(),
                                                   skip.data(),
                                                   count,
                                                   missing,
                                                   channels,
                                                   state,
                                                   {},
                                                   adds,
                                                   adds},
                        {2, 32, 0}, stream);
        runtime->synchronize_stream(stream);
        for (std::size_t i = 0; i < count + missing; ++i) {
          const bool passes = !signs || (0xB5 >> i % 8 & 1) != 0;
          const float dz = i < count && passes ? dy[i] : 0, before = adds ? old[i] : 0;
          const float f = factor[i % factor.size()];
          ASSERT_EQ(dx[i], before + (i < count ? 2 * dz + f * x[i] + f : 0)) << i;
          ASSERT_EQ(skip[i], before + dz) << i;
        }
      }
    }
  }
  runtime->destroy_stream(stream);
}

// Rows of a loss, from fewer than a block has threads to several times as many.
TEST(EmulatedKernels, TheLossOfEveryNumberOfRowsIsTheirSum) {
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
          SoftmaxLoss{
              logits.data(), labels_there.data(), p.data(),
              RowLosses{row_loss.data(), row_correct.data(), sums.data(), finished.data(), rows},
              classes, 0, false},
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

template <typename T>
class TunedResults : public testing::Test {};
using PlaneTypes = testing::Types<float, Bf16, Half>;
TYPED_TEST_SUITE(TunedResults, PlaneTypes);

// Of fewer elements than a block has threads, of several blocks, and of more than all at once.
TYPED_TEST(TunedResults, AreCompared) {
  using T = TypeParam;
  constexpr DType kType = std::is_same_v<T, float>  ? DType::f32
                          : std::is_same_v<T, Bf16> ? DType::bf16
                                                    : DType::f16;
  const auto runtime = make_host_runtime();
  const auto tuner = make_gpu_tuner(*runtime, "a card");
  for (const std::size_t count : {std::size_t{5}, std::size_t{1000}, std::size_t{20011}}) {
    SCOPED_TRACE(count);
    const auto a = tuner->allocate(count * sizeof(T)), b = tuner->allocate(count * sizeof(T));
    T* const values = static_cast<T*>(a.get());
    tuner->randomize(a.get(), count, kType);
    values[0] = from_float<T>(0.5F);
    values[count - 1] = from_float<T>(-0.25F);
    tuner->copy(b.get(), a.get(), count * sizeof(T));
    const ResultDifference none = tuner->compare(a.get(), b.get(), count, kType);
    EXPECT_EQ(none.squares, 0);
    EXPECT_EQ(none.largest, 0);
    EXPECT_EQ(none.changed, 0);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(to_float(values[i]));
      squares += value * value;
    }
    EXPECT_NEAR(none.reference_squares, squares, 1e-9 * squares);
    values[0] = from_float<T>(-1.0F);
    values[count - 1] = from_float<T>(0.25F);
    const ResultDifference two = tuner->compare(a.get(), b.get(), count, kType);
    EXPECT_EQ(two.squares, 1.5 * 1.5 + 0.5 * 0.5);
    EXPECT_EQ(two.largest, 1.5);
    EXPECT_EQ(two.changed, 2);
    tuner->poison(a.get(), sizeof(T));
    const ResultDifference poisoned = tuner->compare(a.get(), b.get(), count, kType);
    EXPECT_TRUE(std::isnan(poisoned.squares));
    EXPECT_EQ(poisoned.changed, 2);
    EXPECT_TRUE(std::isnan(tuner->compare(a.get(), a.get(), count, kType).squares));
  }
}

// Zeros of two signs are equal, and not the same bits.
TEST(EmulatedKernels, CompareResultsBitByBit) {
  const auto runtime = make_host_runtime();
  const auto tuner = make_gpu_tuner(*runtime, "a card");
  const auto a = tuner->allocate(sizeof(float)), b = tuner->allocate(sizeof(float));
  *static_cast<float*>(a.get()) = -0.0F;
  const ResultDifference found = tuner->compare(a.get(), b.get(), 1, DType::f32);
  EXPECT_EQ(found.squares, 0);
  EXPECT_EQ(found.changed, 1);
}

}  // namespace
}  // namespace paceline::cuda
