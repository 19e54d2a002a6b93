// The cpu device's own bf16 weight gradients against plain sums in double of the same values.
#include "engine/device/cpu/weight_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/core/memory.h"
#include "engine/core/random.h"

namespace paceline::cpu {
namespace {

struct Case {
  int channels, filters, height, width, kernel, stride, padding, batch;
};

Operation operation_of(const Case& one) {
  Operation op{.kind = OpKind::conv, .name = "conv", .in = {}, .out = {}};
  op.in = {one.height, one.width, one.channels};
  op.out = {(one.height + 2 * one.padding - one.kernel) / one.stride + 1,
            (one.width + 2 * one.padding - one.kernel) / one.stride + 1, one.filters};
  op.kernel = one.kernel;
  op.stride = one.stride;
  op.padding = one.padding;
  return op;
}

std::vector<Bf16> random_values(std::size_t count, std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) {
    const auto number = static_cast<float>(random.normal());
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    value.bits = static_cast<std::uint16_t>(bits >> 16);
  }
  return values;
}

double number(Bf16 value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return static_cast<double>(result);
}

std::vector<double> plain_sums(const Operation& op, int batch, const std::vector<Bf16>& x,
                               const std::vector<Bf16>& dy) {
  const int channels = op.in.channels, filters = op.out.channels;
  std::vector<double> dw(static_cast<std::size_t>(op.kernel * op.kernel * channels * filters));
  for (int n = 0; n < batch; ++n) {
    for (int i = 0; i < op.out.height; ++i) {
      for (int j = 0; j < op.out.width; ++j) {
        const Bf16* g =
            &dy[static_cast<std::size_t>(((n * op.out.height + i) * op.out.width + j) * filters)];
        for (int u = 0; u < op.kernel; ++u) {
          for (int v = 0; v < op.kernel; ++v) {
            const int r = i * op.stride + u - op.padding, s = j * op.stride + v - op.padding;
            if (r < 0 || s < 0 || r >= op.in.height || s >= op.in.width) continue;
            for (int c = 0; c < channels; ++c) {
              const double value = number(x[static_cast<std::size_t>(
                  ((n * op.in.height + r) * op.in.width + s) * channels + c)]);
              double* row =
                  &dw[static_cast<std::size_t>(((u * op.kernel + v) * channels + c) * filters)];
              for (int f = 0; f < filters; ++f) row[f] += value * number(g[f]);
            }
          }
        }
      }
    }
  }
  return dw;
}

TEST(WeightGradient, EqualsPlainSums) {
  const Kernels& kernels = kernels_for("");
  const Case cases[] = {
      {16, 32, 5, 7, 1, 1, 0, 2}, {8, 64, 21, 21, 1, 1, 0, 3},  {24, 32, 9, 9, 3, 1, 1, 2},
      {40, 96, 7, 6, 3, 2, 1, 3}, {3, 64, 31, 29, 7, 2, 3, 2},  {64, 64, 10, 10, 1, 2, 0, 2},
      {5, 32, 4, 3, 3, 1, 0, 1},  {128, 512, 4, 5, 3, 1, 1, 1}, {1, 32, 1, 1, 1, 1, 0, 1}};
  for (const Case& one : cases) {
    const Operation op = operation_of(one);
    if (!WeightGradient::supports(op, kernels)) GTEST_SKIP() << "this CPU has no bf16 products";
    const auto batch = static_cast<std::size_t>(one.batch);
    const std::vector<Bf16> x = random_values(batch * op.in.elements(), 1);
    const std::vector<Bf16> dy = random_values(batch * op.out.elements(), 2);
    const std::vector<double> expected = plain_sums(op, one.batch, x, dy);
    for (const int threads : {1, 2, 3, 4}) {
      const Parallel parallel(threads, {});
      const WeightGradient gradient(op, one.batch, kernels, parallel);
      const Memory scratch = host_memory(gradient.scratch_bytes());
      std::vector<float> dw(expected.size(), NAN);
      gradient.run(x.data(), dy.data(), dw.data(), scratch.data());
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < dw.size(); ++i) {
        error += std::pow(static_cast<double>(dw[i]) - expected[i], 2);
        norm += expected[i] * expected[i];
      }
      EXPECT_LT(std::sqrt(error / norm), 1e-5)
          << one.kernel << "x" << one.kernel << " of " << one.channels << " to " << one.filters
          << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace paceline::cpu
