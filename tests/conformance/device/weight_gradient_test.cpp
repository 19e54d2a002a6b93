// The cpu device's own bf16 weight gradients against plain sums in double of the same values.
#include "engine/device/cpu/weight_gradient.h"

#include <gtest/gtest.h>

#include "engine/core/memory.h"
#include "tests/conformance/device/own_conv.h"

namespace paceline::cpu {
namespace {

void expect_plain_sums(const Kernels& kernels) {
  const Case cases[] = {
      {16, 32, 5, 7, 1, 1, 0, 2}, {8, 64, 21, 21, 1, 1, 0, 3},  {24, 32, 9, 9, 3, 1, 1, 2},
      {40, 96, 7, 6, 3, 2, 1, 3}, {3, 64, 31, 29, 7, 2, 3, 2},  {64, 64, 10, 10, 1, 2, 0, 2},
      {5, 32, 4, 3, 3, 1, 0, 1},  {128, 512, 4, 5, 3, 1, 1, 1}, {1, 32, 1, 1, 1, 1, 0, 1}};
  for (const Case& one : cases) {
    const Operation op = parse_operation(one);
    ASSERT_TRUE(WeightGradient::supports(op, kernels));
    const auto batch = static_cast<std::size_t>(one.batch);
    const std::vector<Bf16> x = random_values(batch * op.in.elements(), 1);
    const std::vector<Bf16> dy = random_values(batch * op.out.elements(), 2);
    const std::vector<double> expected =
        plain_weight_gradient(op, one.batch, numbers(x), numbers(dy));
    for (const int threads : {1, 2, 3, 4}) {
      const Parallel parallel(threads, {});
      const WeightGradient gradient(op, one.batch, kernels, parallel);
      const Memory scratch = host_memory(gradient.scratch_bytes());
      std::vector<float> dw(expected.size(), NAN);
      gradient.run(x.data(), dy.data(), dw.data(), scratch.data());
      EXPECT_LT(distance(dw, expected), 1e-5)
          << one.kernel << "x" << one.kernel << " of " << one.channels << " to " << one.filters
          << ", " << threads << " threads";
    }
  }
}

TEST(WeightGradient, EqualsPlainSums) {
  const auto sets = sets_with([](const Kernels& kernels) { return kernels.product.tile; });
  if (sets.empty()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const std::string_view isa : sets) {
    SCOPED_TRACE(isa);
    expect_plain_sums(kernels_for(isa));
  }
}

}  // namespace
}  // namespace paceline::cpu
