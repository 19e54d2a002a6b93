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

// Of GPT-2's layers: up with GELU behind it, and the gradient of down's input times GELU's slope.
// cuDNN 9.19 has 5 and 8 for a described H200.
TEST_F(Compile, ProductsWithGelu) {
  for (const ConvRequest& request : {ConvRequest{{32, 1024, 1, 768, 3072, 1, 1, 0, Math::bf16},
                                                 ConvPass::forward,
                                                 false,
                                                 Epilogue::bias_gelu},
                                     ConvRequest{{32, 1024, 1, 3072, 768, 1, 1, 0, Math::bf16},
                                                 ConvPass::backward_data,
                                                 false,
                                                 Epilogue::gelu_gradient}}) {
    SCOPED_TRACE(to_text(request));
    const Offered offered = cudnn_offer(session_, request, {Math::bf16, false, true});
    ASSERT_FALSE(offered.candidates.empty()) << offered.refused;
    EXPECT_TRUE(offered.candidates.front().tensor_cores);
    expect_compiled(offered.candidates.front());
    if (request.pass != ConvPass::forward) continue;
    // Beside ours, which come first where nothing can be measured.
    ProductsOptions options;
    options.card_description = card_description("h200");
    const auto products = make_products(options);
    const auto plan = products->conv_with(request, {[](const ConvOperands&, Stream) {}, 0, "ours"});
    EXPECT_EQ(plan->implementation(), "ours; own kernels");
    EXPECT_EQ(products->choices().back().offered, offered.count + 1);
  }
}

}  // namespace
}  // namespace paceline::cuda
