// NCCL itself, on a card: a world of one, which is all that one card allows. That calls are
// accepted, memory is registered and a sum can be captured, not that several ranks add up.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/comm/backends/nccl/nccl_group.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "tests/support/no_card.h"

namespace paceline::nccl {
namespace {

void require(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

class NcclOnCard : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const std::string why = cuda::no_card(); !why.empty()) GTEST_SKIP() << why;
    gpus_.gpus = {{0, "", "", ""}};
    gpus_.select = [](int replica) { require(cudaSetDevice(replica)); };
    gpus_.clear = [](void* data, std::size_t bytes) {
      require(cudaMemset(data, 0, bytes));
      require(cudaDeviceSynchronize());
    };
    NcclGroup::Setup setup;
    try {
      setup.library = open_library();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    setup.quirks = find_quirks(setup.library->version, {false, false, false});
    setup.membership.gpus = &gpus_;
    setup.membership.deadlines = {20, 60};
    setup.blocking = GetParam();
    ASSERT_EQ(setup.library->get_unique_id(&setup.id), ncclSuccess);
    const double start = now_seconds();
    group_ = std::make_shared<NcclGroup>(setup);
    std::printf("%s joined in %.3f s\n", setup.library->version_text().c_str(),
                now_seconds() - start);
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::vector<float> read(const void* data) {
    std::vector<float> host(kCount);
    require(cudaMemcpy(host.data(), data, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
  }
  void write(void* data, float value) {
    const std::vector<float> host(kCount, value);
    require(cudaMemcpy(data, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
    require(cudaDeviceSynchronize());  // the stream below does not wait for it
  }

  static constexpr std::size_t kCount = 1 << 20;
  ReplicaGpus gpus_;
  std::shared_ptr<NcclGroup> group_;
  cudaStream_t stream_ = nullptr;
};

TEST_P(NcclOnCard, SumsInItsOwnMemory) {
  const Memory memory = group_->allocate(0, kCount * sizeof(float));
  EXPECT_EQ(read(memory.data()), std::vector<float>(kCount, 0.0F));
  write(memory.data(), 2.5F);
  const double start = now_seconds();
  constexpr int kSums = 20;
  for (int i = 0; i < kSums; ++i) {
    group_->all_reduce(0, memory.data(), kCount, DType::f32, stream_, "test");
  }
  std::printf("%.1f us a queued sum\n", (now_seconds() - start) / kSums * 1e6);
  require(cudaStreamSynchronize(stream_));
  group_->throw_if_ended();
  EXPECT_EQ(read(memory.data()), std::vector<float>(kCount, 2.5F));
}

TEST_P(NcclOnCard, ASumIsCapturedAndReplayed) {
  const Memory memory = group_->allocate(0, kCount * sizeof(float));
  write(memory.data(), 3.0F);
  group_->all_reduce(0, memory.data(), kCount, DType::f32, stream_, "first, to connect");
  require(cudaStreamSynchronize(stream_));
  require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  group_->all_reduce(0, memory.data(), kCount, DType::f32, stream_, "captured");
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t replayed = nullptr;
  require(cudaGraphInstantiate(&replayed, graph, 0));
  group_->begin_wait(0, "replay");
  for (int i = 0; i < 3; ++i) require(cudaGraphLaunch(replayed, stream_));
  require(cudaStreamSynchronize(stream_));
  group_->end_wait(0);
  group_->throw_if_ended();
  EXPECT_EQ(read(memory.data()), std::vector<float>(kCount, 3.0F));
  require(cudaGraphExecDestroy(replayed));
  require(cudaGraphDestroy(graph));
}

TEST_P(NcclOnCard, MayBeAborted) {
  const Memory memory = group_->allocate(0, kCount * sizeof(float));
  group_->abort("enough");
  EXPECT_THROW(group_->throw_if_ended(), Error);
  EXPECT_THROW(group_->all_reduce(0, memory.data(), kCount, DType::f32, stream_, "test"), Error);
}

INSTANTIATE_TEST_SUITE_P(Calls, NcclOnCard, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "block" : "do_not_block"; });

}  // namespace
}  // namespace paceline::nccl
