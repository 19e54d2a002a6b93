// The PTX of our kernels itself.
#include "tests/support/ptx/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/norm_pool.h"
#include "tests/support/order_seed.h"
#include "tests/support/ptx/machine.h"

namespace paceline::ptx {
namespace {

TEST(Ptx, EveryKernelIsThereAndKnownToTheLastInstruction) {
  const auto kernels = cuda::device_kernels();
  EXPECT_EQ(product_module().kernels().size(), kernels.size());
  for (const auto& [type, function] : kernels) {
    const std::string name = readable_name(type.name());
    const PtxKernel* kernel = product_module().find(name);
    ASSERT_NE(kernel, nullptr) << name;
    for (const PtxInstruction& i : kernel->code) {
      EXPECT_NE(i.step, nullptr) << name << ": " << product_module().to_string(i);
    }
  }
}

using Sums = cuda::ChannelSums<cuda::BiasGradient<float>>;

// Runs a kernel of this text on 300 rows of 24 channels in 5 splits. Empty: its sums are right and
// nothing was found.
std::vector<std::string> list_faults(const PtxModule& module) {
  const std::size_t rows = 300, channels = 24;
  const unsigned splits = 5;
  std::vector<float> dy(rows * channels), db(channels), partials(splits * channels);
  std::iota(dy.begin(), dy.end(), 0.0F);
  const cuda::ChannelTiling tiling{rows, static_cast<int>(channels), splits};
  std::vector<unsigned> finished(tiling.tiles());
  const Sums kernel{
      tiling, partials.data(), finished.data(), {dy.data(), db.data(), static_cast<int>(channels)}};
  std::vector<LiveMemory> live;
  const auto add = [&](const auto& values) {
    live.push_back(
        {reinterpret_cast<std::uintptr_t>(values.data()), values.size() * sizeof(values[0])});
  };
  add(dy), add(db), add(partials), add(finished);
  std::sort(live.begin(), live.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::mt19937 order(static_cast<unsigned>(order_seed()));
  const PtxLaunch launch{tiling.tiles() * splits, cuda::ChannelTiling::kThreads,
                         Sums::shared_bytes(), &kernel, sizeof kernel};
  auto faults =
      run_ptx(module, *module.find(readable_name(typeid(Sums).name())), launch, live, order).faults;
  for (std::size_t c = 0; c < channels; ++c) {
    float expected = 0;
    for (std::size_t r = 0; r < rows; ++r) expected += dy[r * channels + c];
    if (std::abs(db[c] - expected) > 1e-5F * expected) faults.push_back("a wrong sum");
  }
  return faults;
}

// Without it there is a race, or a value that is not there yet. Of the kernel's seven, two stand
// before another one and one orders global memory, which is in order here.
TEST(Ptx, ABarrierThatIsTakenOutIsMissed) {
  const std::string& text = product_text();
  const auto begin =
      text.find(".entry _ZN8paceline4cuda5entryINS0_11ChannelSumsINS0_12BiasGradientIf");
  const std::string kernel = text.substr(begin, text.find("\n}", begin) + 2 - begin);
  EXPECT_EQ(list_faults(PtxModule(kernel)), std::vector<std::string>{});
  const std::string barrier = "bar.sync \t0;";
  int barriers = 0, found = 0;
  for (auto at = kernel.find(barrier); at != std::string::npos;
       at = kernel.find(barrier, at + 1), ++barriers) {
    std::string without = kernel;
    without.replace(at, barrier.size(), "");
    found += !list_faults(PtxModule(without)).empty();
  }
  EXPECT_GE(found, barriers - 3);
  EXPECT_GE(found, 4);
}

// Memory that lives as long as a test.
class Heap {
 public:
  template <typename T>
  T* take(std::size_t count, T value = {}) {
    auto memory = std::make_shared<std::vector<T>>(count, value);
    live_[reinterpret_cast<std::uintptr_t>(memory->data())] = count * sizeof(T);
    kept_.push_back(memory);
    return memory->data();
  }
  // PTX instructions that all threads of a launch run.
  template <typename Kernel>
  double instructions(const Kernel& kernel, unsigned blocks, std::size_t shared = 0) {
    std::vector<LiveMemory> live;
    for (const auto& [first, bytes] : live_) live.push_back({first, bytes});
    std::mt19937 order(static_cast<unsigned>(order_seed()));
    const PtxKernel& code = *product_module().find(readable_name(typeid(Kernel).name()));
    const PtxOutcome outcome =
        run_ptx(product_module(), code, {blocks, 256, shared, &kernel, sizeof kernel}, live, order);
    EXPECT_EQ(outcome.faults, std::vector<std::string>{});
    return static_cast<double>(outcome.instructions);
  }

 private:
  std::map<std::uintptr_t, std::size_t> live_;
  std::vector<std::shared_ptr<void>> kept_;
};

// A stem's kernels branch within their loops, so what they run is counted: for a vector of the
// plane that each walks over. As much is machine code (machine_code_test.cpp counts loops).
TEST(Ptx, KernelsOfAStemRunFewInstructions) {
  Heap heap;
  using T = cuda::Bf16;
  const cuda::Window w{64, 64, 32, 32, 3, 2, 1, 64};
  const std::size_t in = 64 * 64 * 64, out = in / 4, channels = 64;
  T *x = heap.take<T>(in), *y = heap.take<T>(out), *dx = heap.take<T>(in);
  for (std::size_t i = 0; i < in; ++i) x[i].bits = static_cast<std::uint16_t>(i * 40503 % 0x7F00);
  auto* chosen = heap.take<std::uint8_t>(out);
  cuda::NormState state{};
  for (float** of : {&state.mean, &state.inverse, &state.scale, &state.shift, &state.dy_factor,
                     &state.x_factor, &state.constant}) {
    *of = heap.take<float>(channels, 1);
  }
  cuda::NormParameters parameters{};
  parameters.beta_gradient = heap.take<float>(channels);
  parameters.gamma_gradient = heap.take<float>(channels);
  const double vectors = in / 8;
  const auto expect_at_most = [](const char* what, double limit, double count) {
    std::printf("%s: %.0f PTX instructions a vector\n", what, count);
    EXPECT_LE(count, limit) << what;
  };
  expect_at_most("NormPool", 700,
                 heap.instructions(cuda::NormPool<T>{w, x, y, chosen, 1, state}, 4) / vectors * 4);
  expect_at_most(
      "NormPoolGradient", 220,
      heap.instructions(cuda::NormPoolGradient<T>{w, x, y, chosen, dx, 1, 1, state, false}, 4) /
          vectors);
  const unsigned splits = 4;
  const cuda::ChannelTiling tiling{out / channels, 64, splits};
  using Sums = cuda::ChannelSums<cuda::NormPoolGradientSums<T>>;
  const Sums sums{tiling,
                  heap.take<float>(2 * splits * channels),
                  heap.take<unsigned>(tiling.tiles()),
                  {w, x, y, chosen, in / channels, state, parameters}};
  expect_at_most("NormPoolGradientSums", 400,
                 heap.instructions(sums, splits, Sums::shared_bytes()) / vectors * 4);
}

}  // namespace
}  // namespace paceline::ptx
