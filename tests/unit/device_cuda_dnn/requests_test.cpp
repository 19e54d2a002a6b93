#include <gtest/gtest.h>

#include <set>

#include "engine/device/cuda/products.h"
#include "tests/support/described_cards/described_cards.h"

namespace paceline::cuda {
namespace {

TEST(Requests, ChannelsArePaddedToSixteenBytes) {
  EXPECT_EQ(padded_channels(Math::bf16, 3), 8);
  EXPECT_EQ(padded_channels(Math::fp16, 8), 8);
  EXPECT_EQ(padded_channels(Math::fp16, 9), 16);
  EXPECT_EQ(padded_channels(Math::fp32, 3), 4);
  EXPECT_EQ(padded_channels(Math::tf32, 64), 64);
}

TEST(Requests, HaveDistinctNames) {
  const ConvShape shape{32, 75, 75, 64, 128, 3, 2, 1, Math::bf16};
  std::vector<ConvRequest> all{{shape, ConvPass::forward},
                               {shape, ConvPass::backward_data},
                               {shape, ConvPass::backward_data, true},
                               {shape, ConvPass::backward_weights},
                               {shape, ConvPass::forward, false, Epilogue::bias},
                               {shape, ConvPass::forward, false, Epilogue::bias_add},
                               {shape, ConvPass::forward, false, Epilogue::bias_gelu},
                               {shape, ConvPass::backward_data, false, Epilogue::gelu_gradient},
                               {shape, ConvPass::backward_weights, false, Epilogue::left_gradient}};
  const auto with = [&](auto member, auto value) {
    ConvRequest request{shape, ConvPass::forward};
    request.shape.*member = value;
    all.push_back(request);
  };
  with(&ConvShape::batch, 33);
  with(&ConvShape::height, 76);
  with(&ConvShape::width, 76);
  with(&ConvShape::in, 72);
  with(&ConvShape::out, 136);
  with(&ConvShape::kernel, 1);
  with(&ConvShape::stride, 1);
  with(&ConvShape::padding, 0);
  with(&ConvShape::math, Math::fp16);
  std::set<std::string> names;
  for (const ConvRequest& request : all) names.insert(to_text(request));
  EXPECT_EQ(names.size(), all.size());
  EXPECT_EQ(to_text(all[2]), "backward_data 32x75x75x64 to 128 3x3 / 2 + 1 bf16 adds");
  EXPECT_EQ(to_text(MatmulShape{64, 784, 512, false, true, true, Math::tf32}),
            "product 64x784x512 right transposed tf32 adds");
  std::set<std::string> products;
  for (const Epilogue epilogue :
       {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gradient}) {
    products.insert(to_text(MatmulShape{64, 784, 512, false, false, false, Math::tf32, epilogue}));
  }
  EXPECT_EQ(products.size(), 4U);
}

// The first layer's input has no gradient; an equal layer asks for nothing new; the sum of two
// branches adds to a gradient.
TEST(Requests, AreThoseOfAStepEachOnce) {
  Network network("n", {10, 10, 3}, 5);
  network.conv(16, 3, 1, 1);
  const int first = network.last();
  network.conv(16, 3, 1, 1).conv(16, 3, 1, 1).add(first).flatten().dense(5);
  const Plan plan =
      make_plan(network, 4, DType::f32, [](const Operation&) { return Support::yes(); });
  std::vector<std::string> names;
  for (const ConvRequest& request : conv_requests(plan, Math::bf16)) {
    names.push_back(to_text(request));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward 4x10x10x8 to 16 3x3 / 1 + 1 bf16",
                                             "backward_weights 4x10x10x8 to 16 3x3 / 1 + 1 bf16",
                                             "forward 4x10x10x16 to 16 3x3 / 1 + 1 bf16",
                                             "backward_data 4x10x10x16 to 16 3x3 / 1 + 1 bf16 adds",
                                             "backward_weights 4x10x10x16 to 16 3x3 / 1 + 1 bf16",
                                             "backward_data 4x10x10x16 to 16 3x3 / 1 + 1 bf16"}));
}

}  // namespace
}  // namespace paceline::cuda
