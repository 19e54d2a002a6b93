// cuDNN has kernels for what training asks for where convolutions compute the sums of batch
// normalization, on a described H200; they are not compiled here.
#include <algorithm>

#include "engine/device/cuda/dnn/graph.h"
#include "engine/device/cuda/program.h"
#include "tests/conformance/device_cuda/driver.h"
#include "workloads/workload.h"

namespace paceline::cuda {
namespace {

constexpr int kBatch = 32;

Plan plan_workload(const std::string& workload, const std::string& variant) {
  const auto& table = workload_table();
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const auto& one) { return one.name == workload; });
  return make_plan(
      row->make().variant(variant), kBatch, {DType::f32, DType::bf16}, [](const Operation& op) {
        return op.pool && op.kind == OpKind::conv ? Support::no("as on a GPU") : Support::yes();
      });
}

// All 53 convolutions are followed by a normalization. Of those with a ReLU, 32 inside blocks and
// 12 at the end of one whose branch is not normalised, the last one's is averaged and some hand
// their gradient over from a convolution that strides: in three blocks the branch, in v1.5 the 3 x
// 3 too.
TEST(Fusions, OfResNet50) {
  const Plan first = plan_workload("resnet50-imagenet", "v1"),
             later = plan_workload("resnet50-imagenet", "v1.5");
  EXPECT_EQ(statistics_fusions(first).size(), 53U);
  EXPECT_EQ(statistics_fusions(later).size(), 53U);
  EXPECT_EQ(gradient_fusions(first).size(), 32U + 11 - 3);
  EXPECT_EQ(gradient_fusions(later).size(), 32U + 11 - 3 - 3);
}

using FusedOffer = CompilingTest;

TEST_F(FusedOffer, IsThereForWhatTrainingAsksFor) {
  std::vector<FusedRequest> asked;
  const auto ask = [&](const FusedRequest& request) {
    if (std::find(asked.begin(), asked.end(), request) == asked.end()) asked.push_back(request);
  };
  for (const char* variant : {"v1", "v1.5"}) {
    const Plan plan = plan_workload("resnet50-cassava", variant);
    for (const Math math : {Math::bf16, Math::fp16}) {
      for (const Fusion& one : statistics_fusions(plan)) ask(statistics_request(plan, one, math));
      for (const Fusion& one : gradient_fusions(plan)) ask(gradient_request(plan, one, math));
    }
  }
  EXPECT_GT(asked.size(), 60U);
  for (const FusedRequest& one : asked) {
    const EngineRules rules{one.shape.math, false, true};
    EXPECT_FALSE(fused_offer(session_, one, rules).candidates.empty()) << to_text(one);
  }
}

TEST_F(FusedOffer, IsNotThereForGradientsOfConvolutionsThatStride) {
  const FusedRequest strides{{kBatch, 28, 28, 64, 64, 3, 2, 1, Math::bf16},
                             FusedKind::backward_relu_sums};
  EXPECT_TRUE(fused_offer(session_, strides, {Math::bf16, false, true}).candidates.empty());
}

}  // namespace
}  // namespace paceline::cuda
