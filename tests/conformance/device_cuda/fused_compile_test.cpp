// A kernel of each fused kind compiles, for a described H200.
#include "engine/core/text.h"
#include "engine/device/cuda/products/fused_graph.h"
#include "tests/conformance/device_cuda/driver.h"

namespace paceline::cuda {
namespace {

using FusedCompile = CompilingTest;

TEST_F(FusedCompile, OfEachKind) {
  for (const Math math : {Math::bf16, Math::fp16}) {
    const ConvShape shape{32, 56, 56, 64, 64, 3, 1, 1, math};
    for (const FusedRequest& request :
         {FusedRequest{shape, FusedKind::forward_sums},
          FusedRequest{shape, FusedKind::normalized_forward_sums},
          FusedRequest{shape, FusedKind::backward_relu_sums},
          FusedRequest{shape, FusedKind::backward_relu_sums, true, true},
          FusedRequest{shape, FusedKind::backward_mask_sums, true}}) {
      const Offered offered = fused_offer(session_, request, {math, false, true});
      ASSERT_FALSE(offered.candidates.empty()) << text_of(request);
      try {
        offered.candidates.front().build();
      } catch (const Error& error) {
        // The stand-in for a driver loads nothing.
        EXPECT_NE(std::string(error.what()).find("cuLibraryLoadData"), std::string::npos)
            << text_of(request) << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
