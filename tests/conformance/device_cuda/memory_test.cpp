// What a card's memory holds when it is handed out.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/device/cuda/gpu_runtime.h"

namespace paceline::cuda {
namespace {

// Clearing is queued where our streams do not look: what they write early must not be cleared late.
TEST(GpuMemory, IsZeroBeforeAnyStreamWrites) {
  std::string why;
  const std::vector<VisibleGpu> gpus = make_gpu_driver()->visible(why);
  if (gpus.empty()) GTEST_SKIP() << why;
  const auto runtime = make_cuda_runtime(gpus.front());
  const Stream stream = runtime->make_stream();
  const std::size_t large = runtime->free_bytes() / 4;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    const Memory busy = runtime->device_memory(large);  // milliseconds of clearing
    const Memory memory = runtime->device_memory(4096);
    const std::vector<std::uint32_t> pattern(1024, round);
    std::vector<std::uint32_t> first(1024, 7), last(1024, 7);
    runtime->copy(first.data(), memory.data(), 4096, stream);
    runtime->copy(memory.data(), pattern.data(), 4096, stream);
    runtime->synchronize_stream(stream);
    const Memory behind = runtime->device_memory(1);  // waits for what was queued before
    runtime->copy(last.data(), memory.data(), 4096, stream);
    runtime->synchronize_stream(stream);
    EXPECT_EQ(first, std::vector<std::uint32_t>(1024, 0));
    EXPECT_EQ(last, pattern);
  }
  runtime->destroy_stream(stream);
}

}  // namespace
}  // namespace paceline::cuda
