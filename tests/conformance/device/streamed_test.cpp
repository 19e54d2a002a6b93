// What the cpu device writes past the caches, because they would not keep it, has the same bits.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/core/memory.h"
#include "engine/device/cpu/pointwise.h"
#include "engine/device/cpu/winograd.h"
#include "tests/conformance/device/own_conv.h"

namespace paceline::cpu {
namespace {

constexpr std::size_t kAll = 0, kNothing = ~std::size_t{0};  // bytes that caches keep

template <typename T>
struct Plane {
  explicit Plane(const std::vector<T>& values)
      : count(values.size()), memory(host_memory(bytes())) {
    std::copy(values.begin(), values.end(), data());
  }
  std::size_t bytes() const { return count * sizeof(T); }
  T* data() const { return reinterpret_cast<T*>(memory.data()); }
  std::vector<double> values() const {
    std::vector<double> all(count);
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, Bf16>) {
        all[i] = number(data()[i]);
      } else {
        all[i] = static_cast<double>(data()[i]);
      }
    }
    return all;
  }

  std::size_t count;
  Memory memory;
};

std::vector<float> weights(std::size_t count) {
  std::vector<float> w;
  for (const Bf16 value : random_values(count, 3)) w.push_back(static_cast<float>(number(value)));
  return w;
}

TEST(Streamed, Parallel) {
  EXPECT_TRUE(Parallel(1, {}, kAll).streams(1));
  EXPECT_FALSE(Parallel(1, {}, kNothing).streams(std::size_t{1} << 40));
  EXPECT_FALSE(Parallel(1, {}).streams(1 << 16)) << "any last cache keeps half of 128 KiB";
  EXPECT_TRUE(Parallel(1, {}).streams(9 << 20)) << "a virtual machine shows its host's cache";
}

void pointwise_and_winograd_give_the_same_bits(const Kernels& kernels) {
  for (const Case& one : {Case{32, 64, 9, 7, 1, 1, 0, 2}, Case{64, 32, 9, 9, 1, 2, 0, 2},
                          Case{32, 64, 11, 8, 3, 1, 1, 2}}) {
    const Operation op = parse_operation(one);
    if (one.kernel == 3 && !winograd_supports(op, kernels)) continue;
    const std::size_t batch = static_cast<std::size_t>(one.batch);
    const Plane<Bf16> x(random_values(batch * op.in.elements(), 1));
    const Plane<Bf16> dy(random_values(batch * op.out.elements(), 2));
    const std::vector<float> w =
        weights(static_cast<std::size_t>(one.kernel * one.kernel * one.channels * one.filters));
    std::vector<std::vector<double>> y, dx;
    for (const std::size_t kept : {kAll, kNothing}) {
      const Parallel parallel(2, {}, kept);
      const Plane<Bf16> out(std::vector<Bf16>(dy.count, {0x7fc0}));
      const Plane<Bf16> back(std::vector<Bf16>(x.count, {0x7fc0}));
      if (one.kernel == 1) {
        const Pointwise forward(op, one.batch, Pointwise::Pass::forward, kernels, parallel);
        const Pointwise data(op, one.batch, Pointwise::Pass::backward_data, kernels, parallel);
        const Memory scratch = host_memory(std::max(forward.scratch_bytes(), data.scratch_bytes()));
        forward.run({.x = x.data(), .w = w.data(), .y = out.data()}, scratch.data());
        data.run({.x = dy.data(), .w = w.data(), .y = back.data()}, scratch.data());
      } else {
        const Winograd forward(op, one.batch, Winograd::Pass::forward, kernels, parallel);
        const Winograd data(op, one.batch, Winograd::Pass::backward_data, kernels, parallel);
        const Memory scratch = host_memory(std::max(forward.scratch_bytes(), data.scratch_bytes()));
        forward.run(x.data(), w.data(), nullptr, out.data(), scratch.data());
        data.run(dy.data(), w.data(), nullptr, back.data(), scratch.data());
      }
      y.push_back(out.values());
      dx.push_back(back.values());
    }
    EXPECT_EQ(y[0], y[1]);
    EXPECT_EQ(dx[0], dx[1]);
  }
}

TEST(Streamed, PointwiseAndWinograd) {
  const auto sets = sets_with([](const Kernels& kernels) { return kernels.pointwise.product; });
  if (sets.empty()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const std::string_view isa : sets) {
    SCOPED_TRACE(isa);
    pointwise_and_winograd_give_the_same_bits(kernels_for(isa));
  }
}

template <typename T>
void norm_gives_the_same_bits(const std::vector<T>& values) {
  const NormKernels<T>& kernels = kernels_for("").norm<T>();
  constexpr std::size_t kChannels = 48;
  const Plane<T> x(values);
  const std::size_t rows = values.size() / kChannels;
  std::vector<float> a(kChannels), b(kChannels);
  std::iota(a.begin(), a.end(), 1.0F);
  std::iota(b.begin(), b.end(), -20.0F);
  std::vector<std::vector<double>> forward, backward;
  for (const bool streams : {true, false}) {
    const Plane<T> y(std::vector<T>(values.size())), dx(std::vector<T>(values.size()));
    std::vector<std::uint8_t> signs(values.size() / 8);
    kernels.apply({.x = x.data(),
                   .y = y.data(),
                   .rows = rows,
                   .channels = kChannels,
                   .a = a.data(),
                   .b = b.data(),
                   .signs = signs.data(),
                   .streams = streams});
    kernels.backward({.x = x.data(),
                      .dy = y.data(),
                      .dx = dx.data(),
                      .rows = rows,
                      .channels = kChannels,
                      .a = a.data(),
                      .c1 = b.data(),
                      .c0 = a.data(),
                      .signs = signs.data(),
                      .streams = streams});
    forward.push_back(y.values());
    backward.push_back(dx.values());
  }
  EXPECT_EQ(forward[0], forward[1]);
  EXPECT_EQ(backward[0], backward[1]);
}

TEST(Streamed, Norm) {
  norm_gives_the_same_bits(random_values(std::size_t{48} * 19, 5));
  norm_gives_the_same_bits(weights(std::size_t{48} * 19));
}

}  // namespace
}  // namespace paceline::cpu
