// The cpu device's own 3x3 convolutions by Winograd's filtering in fp32, of planes in fp32 and
// bf16, against plain sums in double.
#include "engine/device/cpu/winograd_fp32.h"

#include <gtest/gtest.h>

#include "engine/core/memory.h"
#include "tests/conformance/device/own_conv.h"

namespace paceline::cpu {
namespace {

// Relative norm. The direct sum in fp32 has about 2e-7, and rounding a result to bf16 makes 2e-3.
constexpr double kTolerance = 1e-5, kBf16Tolerance = 3e-3;

constexpr std::size_t kGuard = 64 << 10;  // bytes behind the scratch that nobody may write

constexpr Case kCases[] = {{32, 32, 4, 4, 3, 1, 1, 1},    {32, 64, 7, 6, 3, 1, 1, 3},
                           {64, 32, 8, 15, 3, 1, 1, 2},   {96, 32, 19, 19, 3, 1, 1, 2},
                           {128, 64, 10, 10, 3, 1, 1, 3}, {32, 32, 30, 33, 3, 1, 1, 6},
                           {224, 32, 24, 20, 3, 1, 1, 1}};

std::vector<double> random_numbers(std::size_t count, std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  std::vector<double> values(count);
  for (double& value : values) value = number(rounded(random.normal()));
  return values;
}

// NHWC in the order of `layout`, or back.
template <typename T>
std::vector<T> reordered(const std::vector<T>& from, const Shape& plane, Layout layout, bool back) {
  if (layout == Layout::nhwc) return from;
  const auto channels = static_cast<std::size_t>(plane.channels);
  const std::size_t places = plane.elements() / channels;
  std::vector<T> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t c = i % channels, place = i / channels % places;
    const std::size_t sample = i / channels / places;
    const std::size_t blocked = ((sample * channels / 16 + c / 16) * places + place) * 16 + c % 16;
    back ? to[i] = from[blocked] : to[blocked] = from[i];
  }
  return to;
}

struct Fp32Results {
  std::vector<float> y, dx, dw;
};

class Fp32Problem {
 public:
  explicit Fp32Problem(const Case& one) : batch_(one.batch), op_(parse_operation(one)) {
    const auto batch = static_cast<std::size_t>(batch_);
    x_ = random_numbers(batch * op_.in.elements(), 1);
    dy_ = random_numbers(batch * op_.out.elements(), 2);
    w_ = random_numbers(static_cast<std::size_t>(9 * one.channels * one.filters), 3);
    bias_.assign(static_cast<std::size_t>(one.filters), 3);
    Operation back = op_;
    std::swap(back.in, back.out);
    const std::vector<float> none(static_cast<std::size_t>(one.channels));
    y_ = plain_forward(op_, batch_, x_, w_, bias_);
    dx_ = plain_forward(back, batch_, dy_, turned_round(op_, w_), none);
    dw_ = plain_weight_gradient(op_, batch_, x_, dy_);
  }

  void expect_right(const Fp32Results& got, double of_planes = kTolerance) const {
    EXPECT_LT(distance(got.y, y_), of_planes);
    EXPECT_LT(distance(got.dx, dx_), of_planes);
    EXPECT_LT(distance(got.dw, dw_), kTolerance);
  }

  // T: the element type of planes.
  template <typename T = float>
  Fp32Results run(Layout layout, const Kernels& kernels, const Parallel& parallel) const {
    using Pass = WinogradFp32::Pass;
    const LibraryKernel::Planes planes{std::is_same_v<T, float> ? DType::f32 : DType::bf16, layout,
                                       layout, batch_};
    const WinogradFp32 forward(op_, planes, Pass::forward, kernels, parallel);
    const WinogradFp32 data(op_, planes, Pass::backward_data, kernels, parallel);
    const WinogradFp32Gradient gradient(op_, planes, kernels, parallel);
    const std::size_t most =
        std::max({forward.scratch_bytes(), data.scratch_bytes(), gradient.scratch_bytes()});
    const Memory scratch = host_memory(most + kGuard);
    std::fill_n(scratch.data(), scratch.bytes(), std::byte{0xff});  // a NaN where it was not set
    const Plane<T> x(reordered(x_, op_.in, layout, false));
    const Plane<T> dy(reordered(dy_, op_.out, layout, false));
    Plane<T> y(std::vector<double>(dy_.size(), NAN)), dx(std::vector<double>(x_.size(), NAN));
    const std::vector<float> w(w_.begin(), w_.end());
    std::vector<float> dw(w.size(), NAN);
    // Each at the end of the memory, so that what it writes beyond its scratch is seen.
    const auto scratch_size = [&](const auto& pass) {
      return scratch.data() + most - pass.scratch_bytes();
    };
    forward.run(x.data(), w.data(), bias_.data(), y.data(), scratch_size(forward));
    data.run(dy.data(), w.data(), nullptr, dx.data(), scratch_size(data));
    gradient.run(x.data(), dy.data(), dw.data(), scratch_size(gradient));
    EXPECT_TRUE(std::all_of(scratch.data() + most, scratch.data() + most + kGuard,
                            [](std::byte byte) { return byte == std::byte{0xff}; }));
    return {reordered(y.values(), op_.out, layout, true),
            reordered(dx.values(), op_.in, layout, true), dw};
  }

 private:
  // On the border that planes of a program have.
  template <typename T>
  class Plane {
   public:
    explicit Plane(const std::vector<double>& values)
        : memory_(host_memory(values.size() * sizeof(T))), count_(values.size()) {
      std::transform(values.begin(), values.end(), data(), [](double value) {
        if constexpr (std::is_same_v<T, float>) {
          return static_cast<float>(value);
        } else {
          return rounded(value);
        }
      });
    }
    T* data() const { return reinterpret_cast<T*>(memory_.data()); }
    std::vector<float> values() const {
      std::vector<float> values(count_);
      std::transform(data(), data() + count_, values.begin(), [](T value) {
        if constexpr (std::is_same_v<T, float>) {
          return value;
        } else {
          return static_cast<float>(number(value));
        }
      });
      return values;
    }

   private:
    Memory memory_;
    std::size_t count_;
  };

  int batch_;
  Operation op_;
  std::vector<double> x_, dy_, w_, y_, dx_, dw_;
  std::vector<float> bias_;
};

std::vector<std::string_view> sets_with_kernels() {
  return sets_with([](const Kernels& kernels) { return kernels.winograd_fp32.rows > 0; });
}

TEST(WinogradFp32, IsTheConvolutionAndItsGradientsInEachLayout) {
  if (sets_with_kernels().empty()) GTEST_SKIP() << "this CPU has no AVX2";
  for (const Case& one : kCases) {
    const Fp32Problem problem(one);
    const Parallel parallel(1, {});
    for (const std::string_view isa : sets_with_kernels()) {
      for (const Layout layout : {Layout::nhwc, Layout::blocked}) {
        SCOPED_TRACE(std::string(isa) + ", " + to_string(layout) + ", " +
                     std::to_string(one.channels) + " channels");
        ASSERT_TRUE(winograd_fp32_supports(parse_operation(one), kernels_for(isa)));
        problem.expect_right(problem.run(layout, kernels_for(isa), parallel));
      }
    }
  }
}

TEST(WinogradFp32, ReadsAndWritesBf16) {
  if (sets_with_kernels().empty()) GTEST_SKIP() << "this CPU has no AVX2";
  for (const Case& one : kCases) {
    const Fp32Problem problem(one);
    for (const std::string_view isa : sets_with_kernels()) {
      SCOPED_TRACE(std::string(isa) + ", " + std::to_string(one.channels) + " channels");
      problem.expect_right(problem.run<Bf16>(Layout::nhwc, kernels_for(isa), Parallel(1, {})),
                           kBf16Tolerance);
    }
  }
}

TEST(WinogradFp32, IsTheSameWithAnyNumberOfThreadsAndPastTheCaches) {
  if (sets_with_kernels().empty()) GTEST_SKIP() << "this CPU has no AVX2";
  const Kernels& kernels = kernels_for(sets_with_kernels().front());
  const Fp32Problem problem(kCases[5]);
  const Fp32Results alone = problem.run(Layout::blocked, kernels, Parallel(1, {}));
  for (const int threads : {2, 3, 4}) {
    constexpr std::size_t kNothingKept = 0;
    const Fp32Results more =
        problem.run(Layout::blocked, kernels, Parallel(threads, {}, kNothingKept));
    EXPECT_EQ(more.y, alone.y);
    EXPECT_EQ(more.dx, alone.dx);
    EXPECT_EQ(more.dw, alone.dw);
  }
}

TEST(WinogradFp32, LeavesOtherShapesToTheLibrary) {
  if (sets_with_kernels().empty()) GTEST_SKIP() << "this CPU has no AVX2";
  const Kernels& kernels = kernels_for(sets_with_kernels().front());
  const Case others[] = {{32, 32, 8, 8, 3, 2, 1, 1}, {32, 32, 8, 8, 3, 1, 0, 1},
                         {32, 32, 8, 8, 1, 1, 0, 1}, {3, 32, 8, 8, 3, 1, 1, 1},
                         {32, 40, 8, 8, 3, 1, 1, 1}, {32, 32, 2, 2, 3, 1, 1, 1},
                         {32, 32, 1, 30, 3, 1, 1, 1}};
  for (const Case& one : others)
    EXPECT_FALSE(winograd_fp32_supports(parse_operation(one), kernels));
}

}  // namespace
}  // namespace paceline::cpu
