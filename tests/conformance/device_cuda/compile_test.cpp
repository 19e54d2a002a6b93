// Convolutions that cuDNN compiles at run time: they do, for a described H200.
#include <algorithm>

#include "engine/device/cuda/dnn/graph.h"
#include "tests/conformance/device_cuda/driver.h"

namespace paceline::cuda {
namespace {

using Compile = CompilingTest;

void expect_compiled(const Candidate& candidate) {
  try {
    candidate.build();
  } catch (const Error& error) {
    // The stand-in for a driver loads nothing.
    EXPECT_NE(std::string(error.what()).find("cuLibraryLoadData"), std::string::npos)
        << candidate.recipe.text() << ": " << error.what();
  }
}

// --tune thorough: more ways compete, and these are the ones that compile. cuDNN 9.19 has none for
// this data gradient.
TEST_F(Compile, ConvolutionsOnlyIfAsked) {
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

}  // namespace
}  // namespace paceline::cuda
