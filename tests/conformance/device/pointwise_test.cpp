// The cpu device's own 1x1 convolutions, and the sums that they take on the way, against plain sums
// of whole numbers: everything is exact.
#include "engine/device/cpu/pointwise.h"

#include <gtest/gtest.h>

#include "engine/core/memory.h"
#include "tests/conformance/device/own_conv.h"

namespace paceline::cpu {
namespace {

constexpr Case kCases[] = {{32, 32, 1, 1, 1, 1, 0, 1},   {64, 32, 5, 7, 1, 1, 0, 3},
                           {32, 96, 21, 22, 1, 1, 0, 2}, {64, 128, 7, 6, 1, 2, 0, 3},
                           {32, 64, 9, 9, 1, 2, 0, 2},   {32, 32, 10, 8, 1, 3, 0, 2}};
constexpr int kSamples = 1;  // enter the sums

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

struct Problem {
  explicit Problem(const Case& c)
      : one(c),
        op(parse_operation(c)),
        x(whole_values(size(c.batch) * op.in.elements(), 1)),
        dy(whole_values(size(c.batch) * op.out.elements(), 2)),
        bias(size(c.filters), 1) {
    for (const Bf16 value : whole_values(size(c.channels * c.filters), 3)) {
      w.push_back(static_cast<float>(number(value)));
    }
  }

  // Calls visit(place of the output, its place of the input).
  template <typename Visit>
  void places(int samples, Visit visit) const {
    for (int n = 0; n < samples; ++n) {
      for (int i = 0; i < op.out.height; ++i) {
        for (int j = 0; j < op.out.width; ++j) {
          visit(size((n * op.out.height + i) * op.out.width + j),
                size((n * op.in.height + i * op.stride) * op.in.width + j * op.stride));
        }
      }
    }
  }
  double at(int c, int f) const { return static_cast<double>(w[size(c * one.filters + f)]); }

  std::vector<double> forward() const {
    std::vector<double> y(dy.size());
    places(one.batch, [&](std::size_t out, std::size_t in) {
      for (int f = 0; f < one.filters; ++f) {
        double sum = 1;
        for (int c = 0; c < one.channels; ++c) {
          sum += number(x[in * size(one.channels) + size(c)]) * at(c, f);
        }
        y[out * size(one.filters) + size(f)] = sum;
      }
    });
    return y;
  }
  std::vector<double> backward(std::vector<double> dx) const {
    places(one.batch, [&](std::size_t out, std::size_t in) {
      for (int c = 0; c < one.channels; ++c) {
        for (int f = 0; f < one.filters; ++f) {
          dx[in * size(one.channels) + size(c)] +=
              number(dy[out * size(one.filters) + size(f)]) * at(c, f);
        }
      }
    });
    return dx;
  }

  Case one;
  Operation op;
  std::vector<Bf16> x, dy;
  std::vector<float> w, bias;
};

// Total of all threads; pivots are whole numbers, too.
std::vector<double> total(const ChannelSums& sums, bool of_q) {
  std::vector<double> result(sums.pivot.size());
  for (const auto& thread : sums.threads) {
    const auto& part = of_q ? thread.total_q : thread.total_s;
    std::transform(part.begin(), part.end(), result.begin(), result.begin(), std::plus<>());
  }
  return result;
}

std::vector<double> as_bf16(std::vector<double> values) {
  for (double& value : values) value = number(rounded(value));
  return values;
}

// Both ways to multiply, with several numbers of threads.
class OwnPointwise : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  void SetUp() override {
    const auto sets = sets_with([](const Kernels& kernels) { return kernels.pointwise.product; });
    if (std::find(sets.begin(), sets.end(), isa()) == sets.end()) {
      GTEST_SKIP() << "this CPU has no " << isa();
    }
    kernels_ = kernels_for(isa());
  }
  static std::string_view isa() { return std::get<0>(GetParam()); }

  Kernels kernels_ = kernels_for("");
  const Parallel parallel_{std::get<1>(GetParam()), {}};
};

TEST_P(OwnPointwise, ForwardAndItsSums) {
  for (const Case& one : kCases) {
    const Problem problem(one);
    const Pointwise forward(problem.op, one.batch, Pointwise::Pass::forward, kernels_, parallel_);
    const Memory scratch = host_memory(forward.scratch_bytes());
    std::vector<Bf16> y(problem.dy.size(), {0x7fc0});
    ChannelSums sums(size(one.filters), parallel_.threads());
    // Twice: the first run's sums must not enter the second's.
    for (int run = 0; run < 2; ++run) {
      forward.run({.x = problem.x.data(),
                   .w = problem.w.data(),
                   .bias = problem.bias.data(),
                   .y = y.data(),
                   .sums = &sums,
                   .samples = kSamples},
                  scratch.data());
    }
    const std::vector<double> exact = problem.forward();
    EXPECT_EQ(numbers(y), as_bf16(exact));
    EXPECT_TRUE(sums.take());
    EXPECT_FALSE(sums.take());
    std::vector<double> s(size(one.filters)), q(size(one.filters));
    problem.places(kSamples, [&](std::size_t out, std::size_t) {
      for (std::size_t f = 0; f < s.size(); ++f) {
        const double d = exact[out * s.size() + f] - static_cast<double>(sums.pivot[f]);
        s[f] += d;
        q[f] += d * d;
      }
    });
    for (std::size_t f = 0; f < s.size(); ++f) {
      EXPECT_EQ(static_cast<double>(sums.pivot[f]), number(rounded(exact[f])));
    }
    EXPECT_EQ(total(sums, false), s);
    EXPECT_EQ(total(sums, true), q);
  }
}

TEST_P(OwnPointwise, GradientSetsOrAdds) {
  for (const Case& one : kCases) {
    const Problem problem(one);
    const Pointwise data(problem.op, one.batch, Pointwise::Pass::backward_data, kernels_,
                         parallel_);
    const Memory scratch = host_memory(data.scratch_bytes());
    for (const bool adds : {false, true}) {
      const std::vector<Bf16> before = whole_values(problem.x.size(), 7);
      std::vector<Bf16> dx = before;
      data.run({.x = problem.dy.data(), .w = problem.w.data(), .y = dx.data(), .adds = adds},
               scratch.data());
      EXPECT_EQ(numbers(dx), as_bf16(problem.backward(adds ? numbers(before)
                                                           : std::vector<double>(before.size()))));
    }
  }
}

TEST_P(OwnPointwise, GradientTakesTheSumsOfTheNormBefore) {
  for (const Case& one : kCases) {
    if (one.stride > 1) continue;
    const Problem problem(one);
    const auto channels = size(one.channels);
    const Pointwise data(problem.op, one.batch, Pointwise::Pass::backward_data, kernels_,
                         parallel_);
    const Memory scratch = host_memory(data.scratch_bytes());
    const std::vector<Bf16> before = whole_values(problem.x.size(), 7);
    const std::vector<Bf16> x2 = whole_values(problem.x.size(), 8);
    std::vector<std::uint8_t> signs(problem.x.size() / 8);
    RandomSequence random(9, Stream::synthetic, 0);
    for (auto& byte : signs) byte = static_cast<std::uint8_t>(random.below(256));
    for (const bool relu : {false, true}) {
      ChannelSums sums(channels, parallel_.threads()), branch(channels, parallel_.threads());
      std::fill(sums.pivot.begin(), sums.pivot.end(), 2.0F);
      std::fill(branch.pivot.begin(), branch.pivot.end(), -1.0F);
      const GradientSums wanted{&sums,   problem.x.data(), relu ? signs.data() : nullptr,
                                &branch, x2.data(),        kSamples};
      std::vector<Bf16> dx = before;
      data.run({.x = problem.dy.data(),
                .w = problem.w.data(),
                .y = dx.data(),
                .adds = true,
                .gradient_sums = &wanted},
               scratch.data());
      const std::vector<double> exact = problem.backward(numbers(before));
      EXPECT_EQ(numbers(dx), as_bf16(exact));
      std::vector<double> s(channels), q(channels), q2(channels);
      for (std::size_t i = 0; i < size(kSamples) * problem.op.in.elements(); ++i) {
        if (relu && !(signs[i / 8] >> (i % 8) & 1)) continue;
        s[i % channels] += exact[i];
        q[i % channels] += exact[i] * (number(problem.x[i]) - 2);
        q2[i % channels] += exact[i] * (number(x2[i]) + 1);
      }
      EXPECT_EQ(total(sums, false), s);
      EXPECT_EQ(total(sums, true), q);
      EXPECT_EQ(total(branch, true), q2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, OwnPointwise,
                         testing::Combine(testing::Values("avx512bf16", "avx512"),
                                          testing::Values(1, 2, 3, 5)));

TEST(PointwiseShapes, OthersAreLeftToTheLibrary) {
  const auto sets = sets_with([](const Kernels& kernels) { return kernels.pointwise.product; });
  if (sets.empty()) GTEST_SKIP() << "this CPU has no AVX-512";
  const Kernels& kernels = kernels_for(sets.front());
  for (const Case& one : {Case{32, 32, 8, 8, 3, 1, 1, 1}, Case{32, 32, 8, 8, 1, 1, 1, 1},
                          Case{24, 32, 8, 8, 1, 1, 0, 1}, Case{32, 40, 8, 8, 1, 1, 0, 1}}) {
    EXPECT_FALSE(Pointwise::supports(parse_operation(one), kernels));
  }
  EXPECT_FALSE(Pointwise::supports(parse_operation(kCases[0]), kernels_for("baseline")));
}

}  // namespace
}  // namespace paceline::cpu
