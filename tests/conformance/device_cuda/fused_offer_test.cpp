// Every convolution of the ResNets can have its normalization's sums computed beside it, in bf16 on
// a described H200, but the gradients of those that stride: cuDNN offers kernels, which are not
// compiled here.
#include <algorithm>

#include "engine/device/cuda/products/fused_graph.h"
#include "engine/device/cuda/products/requests.h"
#include "tests/conformance/device_cuda/driver.h"
#include "workloads/table.h"

namespace paceline::cuda {
namespace {

constexpr EngineRules kRules{Math::bf16, false, true};
constexpr int kBatch = 32;

std::vector<ConvRequest> convolutions_of(const std::string& name) {
  const auto& table = workload_table();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.name == name; });
  const Network network = row->make().variant("v1.5");
  return conv_requests(
      make_plan(network, kBatch, DType::f32, [](const Operation&) { return Support::yes(); }),
      Math::bf16);
}

using FusedOffer = CompilingTest;

TEST_F(FusedOffer, IsThereForEveryConvolution) {
  int asked = 0;
  for (const ConvRequest& request : convolutions_of("resnet50-cassava")) {
    std::vector<FusedRequest> fused;
    if (request.pass == ConvPass::forward) {
      fused.push_back({request.shape, FusedKind::forward_sums});
      fused.push_back({request.shape, FusedKind::normalized_forward_sums});
    }
    if (request.pass == ConvPass::backward_data) {
      fused.push_back({request.shape, FusedKind::backward_relu_sums});
      if (request.accumulates) {
        fused.push_back({request.shape, FusedKind::backward_mask_sums, true});
      }
    }
    for (const FusedRequest& one : fused) {
      ++asked;
      const bool there = request.pass == ConvPass::forward || request.shape.stride == 1;
      EXPECT_EQ(!fused_offer(session_, one, kRules).candidates.empty(), there) << text_of(one);
    }
  }
  EXPECT_GT(asked, 50);
}

}  // namespace
}  // namespace paceline::cuda
