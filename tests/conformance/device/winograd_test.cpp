// The cpu device's own 3x3 convolutions by Winograd's filtering against plain sums in double.
#include "engine/device/cpu/winograd.h"

#include <gtest/gtest.h>

#include "engine/core/memory.h"
#include "tests/conformance/device/own_conv.h"

namespace paceline::cpu {
namespace {

constexpr Case kCases[] = {{32, 32, 4, 4, 3, 1, 1, 1},    {32, 64, 7, 6, 3, 1, 1, 3},
                           {64, 32, 5, 9, 3, 1, 1, 2},    {96, 32, 19, 19, 3, 1, 1, 2},
                           {128, 64, 10, 10, 3, 1, 1, 3}, {32, 32, 2, 75, 3, 1, 1, 1}};

bool has_pairs() {
  return !sets_with([](const Kernels& kernels) { return kernels.winograd.product; }).empty();
}

// One case with what it should give.
struct Problem {
  Problem(const Case& c, std::vector<Bf16> (*values)(std::size_t, std::uint32_t), double scale)
      : one(c), op(parse_operation(c)) {
    const auto batch = static_cast<std::size_t>(c.batch);
    x = values(batch * op.in.elements(), 1);
    dy = values(batch * op.out.elements(), 2);
    for (const Bf16 value : values(static_cast<std::size_t>(9 * c.channels * c.filters), 3)) {
      exact_w.push_back(scale * number(value));
    }
    w.assign(exact_w.begin(), exact_w.end());
    bias.assign(static_cast<std::size_t>(c.filters), 3);
    y = plain_forward(op, c.batch, numbers(x), exact_w, bias);
    Operation back = op;
    std::swap(back.in, back.out);
    dx = plain_forward(back, c.batch, numbers(dy), turned_round(op, exact_w),
                       std::vector<float>(static_cast<std::size_t>(c.channels)));
    dw = plain_weight_gradient(op, c.batch, numbers(x), numbers(dy));
  }

  // check(y, dx, dw) for each number of threads.
  template <typename Check>
  void run(Check check) const {
    const Kernels& kernels = kernels_for("avx512bf16");
    ASSERT_TRUE(winograd_supports(op, kernels));
    for (const int threads : {1, 2, 3, 4}) {
      const Parallel parallel(threads, {});
      const Winograd forward(op, one.batch, Winograd::Pass::forward, kernels, parallel);
      const Winograd data(op, one.batch, Winograd::Pass::backward_data, kernels, parallel);
      const WinogradGradient gradient(op, one.batch, kernels, parallel);
      const Memory scratch = host_memory(
          std::max({forward.scratch_bytes(), data.scratch_bytes(), gradient.scratch_bytes()}));
      std::fill_n(scratch.data(), scratch.bytes(), std::byte{0xff});  // a NaN where it was not set
      std::vector<Bf16> got_y(dy.size(), {0x7fc0}), got_dx(x.size(), {0x7fc0});
      std::vector<float> got_dw(w.size(), NAN);
      forward.run(x.data(), w.data(), bias.data(), got_y.data(), scratch.data());
      data.run(dy.data(), w.data(), nullptr, got_dx.data(), scratch.data());
      gradient.run(x.data(), dy.data(), got_dw.data(), scratch.data());
      SCOPED_TRACE(std::to_string(one.channels) + " to " + std::to_string(one.filters) + ", " +
                   std::to_string(one.height) + " x " + std::to_string(one.width) + ", " +
                   std::to_string(threads) + " threads");
      check(numbers(got_y), numbers(got_dx), std::vector<double>(got_dw.begin(), got_dw.end()));
    }
  }

  Case one;
  Operation op;
  std::vector<Bf16> x, dy;
  std::vector<double> exact_w, y, dx, dw;
  std::vector<float> w, bias;
};

TEST(Winograd, IsExactOnWholeNumbers) {
  if (!has_pairs()) GTEST_SKIP() << "this CPU has no bf16 products";
  const auto as_bf16 = [](std::vector<double> values) {
    for (double& value : values) value = number(rounded(value));
    return values;
  };
  for (const Case& one : kCases) {
    const Problem problem(one, whole_values, 4);  // quarters of sums of weights are whole
    problem.run([&](const auto& y, const auto& dx, const auto& dw) {
      EXPECT_EQ(y, as_bf16(problem.y));
      EXPECT_EQ(dx, as_bf16(problem.dx));
      EXPECT_EQ(dw, problem.dw);
    });
  }
}

// The bound that engine/device/README.md states.
TEST(Winograd, RoundsLittleMoreThanTheDirectSum) {
  if (!has_pairs()) GTEST_SKIP() << "this CPU has no bf16 products";
  for (const Case& one : kCases) {
    const Problem problem(one, random_values, 1 / 3.0);  // a weight that bf16 does not hold
    problem.run([&](const auto& y, const auto& dx, const auto& dw) {
      EXPECT_LT(distance(y, problem.y), 5e-3);
      EXPECT_LT(distance(dx, problem.dx), 5e-3);
      EXPECT_LT(distance(dw, problem.dw), 5e-3);
    });
  }
}

TEST(Winograd, LeavesOtherShapesToTheLibrary) {
  if (!has_pairs()) GTEST_SKIP() << "this CPU has no bf16 products";
  const Kernels& kernels = kernels_for("avx512bf16");
  const Case others[] = {{32, 32, 8, 8, 3, 2, 1, 1}, {32, 32, 8, 8, 3, 1, 0, 1},
                         {32, 32, 8, 8, 1, 1, 0, 1}, {3, 32, 8, 8, 3, 1, 1, 1},
                         {32, 48, 8, 8, 3, 1, 1, 1}, {32, 32, 1, 1, 3, 1, 1, 1},
                         {32, 32, 1, 30, 3, 1, 1, 1}};
  for (const Case& one : others) EXPECT_FALSE(winograd_supports(parse_operation(one), kernels));
  EXPECT_FALSE(winograd_supports(parse_operation(kCases[0]), kernels_for("baseline")));
}

}  // namespace
}  // namespace paceline::cpu
