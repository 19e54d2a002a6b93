// A kernel of each fused kind compiles, for a described H200.
#include <algorithm>

#include "engine/core/text.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"
#include "tests/conformance/device_cuda/driver.h"

namespace paceline::cuda {
namespace {

using FusedCompile = CompilingTest;

void expect_compiled(const Candidate& candidate) {
  try {
    candidate.build();
  } catch (const Error& error) {
    // The stand-in for a driver loads nothing.
    EXPECT_NE(std::string(error.what()).find("cuLibraryLoadData"), std::string::npos)
        << candidate.recipe.text() << ": " << error.what();
  }
}

TEST_F(FusedCompile, OfEachKind) {
  for (const Math math : {Math::bf16, Math::fp16}) {
    const ConvShape shape{32, 56, 56, 64, 64, 3, 1, 1, math};
    for (const FusedRequest& request : {FusedRequest{shape, FusedKind::forward_sums},
                                        FusedRequest{shape, FusedKind::backward_relu_sums},
                                        FusedRequest{shape, FusedKind::backward_relu_sums, true},
                                        FusedRequest{shape, FusedKind::backward_mask_sums, true}}) {
      const Offered offered = fused_offer(session_, request, {math, false, true});
      ASSERT_FALSE(offered.candidates.empty()) << to_text(request);
      expect_compiled(offered.candidates.front());
    }
  }
}

// --tune thorough: more ways compete, and these are the ones that compile. cuDNN 9.19 has none for
// this data gradient.
TEST_F(FusedCompile, OfPlainConvolutionsOnlyIfAsked) {
  int passes = 0;
  for (const ConvPass pass :
       {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const ConvRequest request{{32, 56, 56, 64, 64, 3, 1, 1, Math::bf16}, pass};
    const Offered few = cudnn_offer(session_, request, {Math::bf16, false, false});
    const Offered all = cudnn_offer(session_, request, {Math::bf16, false, true});
    const auto compiles = [](const Candidate& candidate) { return candidate.compiles; };
    EXPECT_TRUE(std::none_of(few.candidates.begin(), few.candidates.end(), compiles));
    const auto first = std::find_if(all.candidates.begin(), all.candidates.end(), compiles);
    if (first == all.candidates.end()) continue;
    expect_compiled(*first);
    ++passes;
  }
  EXPECT_GE(passes, 1);
}

TEST_F(FusedCompile, OnSeveralThreads) {
  const Libraries libraries{LibraryNames{}};
  std::vector<EarlyBuild> builds;
  for (const int channels : {64, 128, 256}) {
    builds.push_back(
        {{{32, 28, 28, channels, 64, 1, 1, 0, Math::bf16}, FusedKind::forward_sums}, std::nullopt});
  }
  builds.push_back({builds[0].request, Recipe{}});  // names an engine that is not offered
  std::vector<std::shared_ptr<Session>> sessions(2);
  build_early(
      builds, 2,
      [&](int thread) {
        return sessions.at(static_cast<std::size_t>(thread)) =
                   std::make_shared<Session>(libraries.cudnn, card_description("h200"));
      },
      3);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(builds[i].offered);
    EXPECT_GE(builds[i].offered->candidates.size(), 3U);
    for (const Candidate& one : builds[i].offered->candidates) expect_compiled(one);
  }
  EXPECT_FALSE(builds[3].implementation || builds[3].offered);
  EXPECT_TRUE(sessions[0] && sessions[1]);
}

}  // namespace
}  // namespace paceline::cuda
