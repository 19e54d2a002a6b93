// The PTX of our kernels itself.
#include "tests/support/ptx/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/device/cuda/kernels/all.h"
#include "tests/support/ptx/machine.h"

namespace paceline::ptx {
namespace {

struct Names {
  std::vector<std::string> all;
  template <typename Kernel>
  void visit() {
    all.push_back(readable_name(typeid(Kernel).name()));
  }
};

struct VisitNames {
  Names& names;
  template <typename Kernel>
  void visit() {
    names.visit<Kernel>();
  }
};

TEST(Ptx, EveryKernelIsThereAndKnownToTheLastInstruction) {
  Names names;
  cuda::for_each_kernel(VisitNames{names});
  EXPECT_EQ(product_module().kernels().size(), names.all.size());
  for (const std::string& name : names.all) {
    const PtxKernel* kernel = product_module().find(name);
    ASSERT_NE(kernel, nullptr) << name;
    for (const PtxInstruction& i : kernel->code) {
      EXPECT_NE(i.step, nullptr) << name << ": " << product_module().name_of(i);
    }
  }
}

using Sums = cuda::ChannelSums<cuda::BiasGradient<float>>;

// Runs a kernel of this text on 300 rows of 24 channels in 5 splits. Empty: its sums are right and
// nothing was found.
std::vector<std::string> faults_of(const PtxModule& module) {
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
  std::mt19937 order(order_seed());
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
  const std::string mark = "ChannelSumsINS0_12BiasGradientIf";
  const auto begin = text.rfind(".entry", text.find(mark));
  const std::string kernel = text.substr(begin, text.find("\n}", begin) + 2 - begin);
  EXPECT_EQ(faults_of(PtxModule(kernel)), std::vector<std::string>{});
  const std::string barrier = "bar.sync \t0;";
  int barriers = 0, found = 0;
  for (auto at = kernel.find(barrier); at != std::string::npos;
       at = kernel.find(barrier, at + 1), ++barriers) {
    std::string without = kernel;
    without.replace(at, barrier.size(), "");
    found += !faults_of(PtxModule(without)).empty();
  }
  EXPECT_GE(found, barriers - 3);
  EXPECT_GE(found, 4);
}

}  // namespace
}  // namespace paceline::ptx
