// Kernels of networks of tokens by themselves, and each way that a card may choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/device/cuda/kernels/loss.h"
#include "engine/device/cuda/kernels/tokens.h"
#include "engine/device/cuda/program.h"
#include "engine/device/cuda/ways.h"
#include "tests/conformance/cuda/on_device.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

// Rows of one token, far apart and more than are added at once; tokens that nothing reads; widths
// that are no whole vectors.
TEST(EmulatedKernels, EachTokenGetsTheGradientsOfItsRows) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  constexpr std::size_t kContext = 150, kTokens = 97, kFrequent = 31;
  for (const std::size_t samples : {std::size_t{1}, std::size_t{4}}) {
    for (const int width : {5, 16}) {
      const std::size_t rows = samples * kContext, columns = static_cast<std::size_t>(width);
      std::vector<std::uint16_t> tokens;
      for (std::size_t i = 0; i < samples * (kContext + 1); ++i) {
        tokens.push_back(static_cast<std::uint16_t>(i % 3 == 0 ? kFrequent : i * i % kTokens));
      }
      const std::vector<float> dy = numbers(rows * columns, width);
      std::vector<float> wanted = numbers(kTokens * columns, 3);
      const OnDevice<std::uint16_t> tokens_there(*runtime, tokens);
      const OnDevice<float> dy_there(*runtime, dy), gradient(*runtime, wanted);
      const OnDevice<TokenRow> order(*runtime, std::vector<TokenRow>(rows));
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t token = tokens[row + row / kContext];
        for (std::size_t i = 0; i < columns; ++i) {
          wanted[token * columns + i] += dy[row * columns + i];
        }
      }
      runtime->launch(TokenOrder{{tokens_there.data(), rows, kContext}, order.data()},
                      {static_cast<unsigned>(rows / TokenOrder::kThreads + 1), TokenOrder::kThreads,
                       TokenOrder::shared_bytes()},
                      stream);
      runtime->launch(
          TokenGradient<float>{order.data(), dy_there.data(), gradient.data(), rows, width},
          {7, 32, 0}, stream);
      runtime->synchronize_stream(stream);
      EXPECT_EQ(gradient.values(), wanted) << rows << " rows of " << width;
    }
  }
}

// More than are compared with each other, of tokens whose high bytes differ, too; the last tile is
// not full.
TEST(EmulatedKernels, ManyRowsAreSortedByTheirTokensInOrder) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  constexpr std::size_t kContext = 1000, kSamples = 34, kRows = kContext * kSamples;
  ASSERT_GT(token_sort_bytes(kRows), 0U);
  ASSERT_NE(kRows % TokenDigits::kTile, 0U);
  std::vector<std::uint16_t> tokens;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < kSamples * (kContext + 1); ++i) {
    state = state * 1664525 + 1013904223;
    tokens.push_back(i % 5 == 0 ? 65535 : static_cast<std::uint16_t>((state >> 16) % 3000));
  }
  const OnDevice<std::uint16_t> there(*runtime, tokens);
  const OnDevice<TokenRow> order(*runtime, std::vector<TokenRow>(kRows));
  const OnDevice<std::byte> scratch(*runtime, std::vector<std::byte>(token_sort_bytes(kRows)));
  order_tokens(*runtime, {there.data(), kRows, kContext}, order.data(), scratch.data(), stream);
  runtime->synchronize_stream(stream);
  std::vector<unsigned> wanted(kRows);
  std::iota(wanted.begin(), wanted.end(), 0U);
  const auto token = [&](unsigned row) { return tokens[row + row / kContext]; };
  std::ranges::stable_sort(wanted, {}, token);
  const std::vector<TokenRow> sorted = order.values();
  for (std::size_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(sorted[i].row, wanted[i]) << i;
    ASSERT_EQ(sorted[i].token, token(wanted[i]));
  }
}

// A label that is impossible to the network, alone in its thread's vector: the loss is infinite,
// the gradients are not.
TEST(EmulatedKernels, AnInfiniteLossOfATokenHasFiniteGradients) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  constexpr int kClasses = 9;
  std::vector<float> x(kClasses, 1);
  x.back() = -INFINITY;
  const OnDevice<float> logits(*runtime, x), row_loss(*runtime, {0});
  const OnDevice<std::uint16_t> tokens(*runtime, {0, kClasses - 1});
  const OnDevice<std::uint8_t> row_correct(*runtime, {0});
  const OnDevice<double> sums(*runtime, {0, 0, 0});
  const OnDevice<unsigned> finished(*runtime, {0});
  constexpr unsigned kThreads = 32;
  runtime->launch(TokenLoss<float>{logits.data(),
                                   {tokens.data(), 1, 1},
                                   0,
                                   RowLosses{row_loss.data(), row_correct.data(), sums.data(),
                                             finished.data(), 1},
                                   kClasses,
                                   nullptr,
                                   1,
                                   true},
                  {1, kThreads, kThreads * sizeof(double)}, stream);
  runtime->synchronize_stream(stream);
  EXPECT_EQ(sums[0], INFINITY);
  for (int i = 0; i < kClasses; ++i) {
    EXPECT_FLOAT_EQ(logits[static_cast<std::size_t>(i)], i == kClasses - 1 ? -1 : 0.125F) << i;
  }
}

// Gradients of a layer norm in double, and what each way computes.
template <typename T>
void expect_layer_norm(Runtime& runtime, Stream stream, std::size_t way, std::size_t rows,
                       int channels, bool adds) {
  const auto columns = static_cast<std::size_t>(channels);
  const auto stored = [](const std::vector<float>& values) {
    std::vector<T> all;
    for (const float value : values) all.push_back(from_float<T>(value / 8));
    return all;
  };
  const std::vector<T> x = stored(numbers(rows * columns, 1)),
                       dy = stored(numbers(rows * columns, 2)),
                       before = stored(numbers(rows * columns, 3));
  const std::vector<float> gamma = numbers(columns, 4);
  std::vector<float> sums;
  std::vector<double> dx, dgamma(columns), dbeta(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    const double mean = static_cast<double>(r % 3) / 4, scale = 1 + static_cast<double>(r % 5) / 4;
    sums.insert(sums.end(), {static_cast<float>(mean), static_cast<float>(scale)});
    const auto normal = [&](std::size_t c) {
      return (static_cast<double>(to_float(x[r * columns + c])) - mean) * scale;
    };
    const auto g = [&](std::size_t c) {
      return static_cast<double>(to_float(dy[r * columns + c]));
    };
    double sum = 0, projection = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      sum += g(c) * static_cast<double>(gamma[c]) / channels;
      projection += g(c) * static_cast<double>(gamma[c]) * normal(c) / channels;
      dgamma[c] += g(c) * normal(c);
      dbeta[c] += g(c);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const double old = adds ? static_cast<double>(to_float(before[r * columns + c])) : 0;
      dx.push_back(old +
                   scale * (g(c) * static_cast<double>(gamma[c]) - sum - normal(c) * projection));
    }
  }
  const OnDevice<T> x_there(runtime, x), dy_there(runtime, dy), dx_there(runtime, before);
  const OnDevice<float> gamma_there(runtime, gamma), sums_there(runtime, sums),
      dgamma_there(runtime, std::vector<float>(columns, NAN)),
      dbeta_there(runtime, std::vector<float>(columns, NAN)),
      partials(runtime, std::vector<float>(2 * 4 * runtime.multiprocessors() * columns)),
      of_blocks(runtime, std::vector<float>(2 * most_layer_norm_blocks(runtime) * columns, NAN));
  const OnDevice<unsigned> counters(runtime, std::vector<unsigned>(columns));
  run_layer_norm_gradient(
      runtime, way,
      LayerNormWork<T>{x_there.data(), dy_there.data(), dx_there.data(), gamma_there.data(),
                       sums_there.data(), dgamma_there.data(), dbeta_there.data(), rows, channels,
                       adds},
      {partials.data(), counters.data(), of_blocks.data()}, stream);
  runtime.synchronize_stream(stream);
  const double rounding = sizeof(T) == 2 ? 0x1p-8 : 0x1p-20;
  const double largest =
      std::abs(*std::ranges::max_element(dx, {}, [](double value) { return std::abs(value); }));
  for (std::size_t i = 0; i < dx.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(to_float(dx_there[i])), dx[i], rounding * largest) << i;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    ASSERT_NEAR(static_cast<double>(dgamma_there[c]), dgamma[c], 1e-5 * std::sqrt(rows) * 10) << c;
    ASSERT_NEAR(static_cast<double>(dbeta_there[c]), dbeta[c], 1e-5 * std::sqrt(rows) * 10) << c;
  }
}

// Of rows that are fewer than a block has warps, that leave some of its warps without one, and that
// are more than all blocks take at once; of channels that are whole vectors of a warp and not.
TEST(EmulatedKernels, EveryWayComputesTheGradientsOfALayerNorm) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  const std::size_t many = 8 * 3 * std::size_t{runtime->multiprocessors()} + 5;
  for (const std::size_t way : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    for (const auto& [rows, channels] :
         std::vector<std::pair<std::size_t, int>>{{3, 768}, {21, 12}, {many, 72}, {9, 264}}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE("way " + std::to_string(way) + ", " + std::to_string(rows) + " x " +
                     std::to_string(channels));
        if (way == 0) expect_layer_norm<float>(*runtime, stream, way, rows, channels, adds);
        expect_layer_norm<Bf16>(*runtime, stream, way, rows, channels, adds);
      }
    }
  }
  runtime->destroy_stream(stream);
}

// A row that is read once and kept gives what one that is read twice does, also for missing rows
// and where threads are more than vectors.
TEST(EmulatedKernels, EveryWayComputesTheLossOfTokens) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  constexpr std::size_t kRows = 3;
  for (const int classes : {9, 5000, 8200}) {
    const auto count = static_cast<std::size_t>(classes) * (kRows + 1);
    for (const std::size_t way : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      std::vector<float> x = numbers(count, classes);
      x[static_cast<std::size_t>(classes) + 3] = 40;
      const OnDevice<float> logits(*runtime, x), row_loss(*runtime, std::vector<float>(kRows));
      const OnDevice<std::uint16_t> tokens(*runtime, {0, 3, 8, 5});
      const OnDevice<std::uint8_t> row_correct(*runtime, std::vector<std::uint8_t>(kRows));
      const OnDevice<double> sums(*runtime, {0, 0, 0});
      const OnDevice<unsigned> finished(*runtime, {0});
      run_token_loss(*runtime, way,
                     TokenLoss<float>{logits.data(),
                                      {tokens.data(), kRows, kRows},
                                      0,
                                      RowLosses{row_loss.data(), row_correct.data(), sums.data(),
                                                finished.data(), kRows},
                                      classes,
                                      nullptr,
                                      0.5F,
                                      true},
                     kRows + 1, stream);
      runtime->synchronize_stream(stream);
      EXPECT_EQ(finished[0], 0U);
      double loss = 0;
      int correct = 0;
      const std::vector<float> gradient = logits.values();
      for (std::size_t r = 0; r < kRows; ++r) {
        const float* row = x.data() + r * static_cast<std::size_t>(classes);
        const std::size_t label = std::vector<std::size_t>{3, 8, 5}[r];
        double total = 0;
        for (int j = 0; j < classes; ++j) total += std::exp(static_cast<double>(row[j]));
        loss += std::log(total) - static_cast<double>(row[label]);
        correct += std::max_element(row, row + classes) == row + label;
        for (int j = 0; j < classes; ++j) {
          const double p = std::exp(static_cast<double>(row[j])) / total;
          const double wanted = 0.5 * (p - (static_cast<std::size_t>(j) == label ? 1 : 0));
          ASSERT_NEAR(
              static_cast<double>(
                  gradient[r * static_cast<std::size_t>(classes) + static_cast<std::size_t>(j)]),
              wanted, 1e-5)
              << "way " << way << ", row " << r << ", class " << j;
        }
      }
      EXPECT_NEAR(sums[0], loss, 1e-5 * loss) << way;
      EXPECT_EQ(sums[1], correct) << way;
      for (std::size_t i = count - static_cast<std::size_t>(classes); i < count; ++i) {
        ASSERT_EQ(gradient[i], 0) << "a missing row";
      }
    }
  }
  runtime->destroy_stream(stream);
}

}  // namespace
}  // namespace paceline::cuda
