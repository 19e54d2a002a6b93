// cuDNN asked, without a GPU, what it has on a described card for every convolution of every
// workload: in each precision and at small and large batches there must be a plan that is allowed.
// Kernels that are compiled at run time are left out: they take a second each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/core/error.h"
#include "tests/support/described_cards/described_cards.h"
#include "workloads/workload.h"

namespace paceline::cuda {
namespace {

constexpr Math kMaths[] = {Math::fp32, Math::tf32, Math::bf16, Math::fp16};

std::vector<Network> networks() {
  std::vector<Network> all;
  for (const auto& row : workload_table()) {
    const Workload workload = row.make();
    if (!workload.variant) {
      all.push_back(workload.network);
    } else {
      for (const char* variant : {"v1", "v1.5"}) all.push_back(workload.variant(variant));
    }
  }
  return all;
}

// Layer by layer and fused: what is fused decides which gradients are added to others.
std::vector<ConvRequest> requests(Math math, const std::vector<int>& batches) {
  std::vector<ConvRequest> all;
  for (const Network& network : networks()) {
    if (math == Math::fp16 && network.reads_tokens()) continue;  // which the device refuses
    for (const int batch : batches) {
      // A batch of tokens is more rows of the same product.
      if (network.reads_tokens() && batch != batches.front()) continue;
      for (const bool fuse : {false, true}) {
        const Plan plan = make_plan(network, batch, DType::f32, [&](const Operation& operation) {
          return fuse || !operation.fused() ? Support::yes() : Support::no("layer by layer");
        });
        for (const ConvRequest& request : conv_requests(plan, math)) {
          if (std::find(all.begin(), all.end(), request) == all.end()) all.push_back(request);
        }
      }
    }
  }
  return all;
}

class Offer : public testing::TestWithParam<Math> {
 protected:
  void SetUp() override {
    if (described_cards().empty()) GTEST_SKIP() << "built with a cuDNN that describes no cards";
    try {
      Libraries{LibraryNames{}};
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    options_.card_description = card_description("h200");
  }

  std::vector<ConvOffer> offers(const std::vector<int>& batches) const {
    const std::vector<ConvRequest> asked = requests(GetParam(), batches);
    EXPECT_GT(asked.size(), 50 * batches.size());  // two ResNets at three sizes
    const auto products = make_products(options_);
    std::vector<ConvOffer> found = list_offers(*products, asked);
    if (std::getenv("PACELINE_SHOW_OFFERS")) std::fputs(format_table(found).c_str(), stdout);
    for (const ConvOffer& offer : found) {
      EXPECT_TRUE(offer.choice) << to_text(offer.request) << ": " << offer.problem;
    }
    return found;
  }

  ProductsOptions options_;
};

TEST_P(Offer, EveryConvolutionHasAPlan) {
  for (const ConvOffer& offer : offers({32, 64, 256, 400})) {
    if (!offer.choice) continue;
    EXPECT_LE(offer.choice->workspace_bytes, std::size_t{256} << 20) << to_text(offer.request);
    EXPECT_GE(offer.choice->usable, 1) << to_text(offer.request);
    if (GetParam() == Math::fp32) {
      EXPECT_FALSE(offer.choice->tensor_cores) << to_text(offer.request);
    }
    // Not so for the few products of the smallest planes, nor for a padded first layer.
    const ConvShape& shape = offer.request.shape;
    if (stored_as(GetParam()) != DType::f32 && shape.in >= 64 && shape.height > 8) {
      EXPECT_TRUE(offer.choice->tensor_cores) << to_text(offer.request);
    }
  }
}

TEST_P(Offer, DeterminismLeavesEachConvolutionAPlan) {
  options_.deterministic = true;
  offers({32});
}

// They differ where planes are small; the first alone names about 35.
TEST_P(Offer, BothHeuristicsAreAsked) {
  const auto products = make_products(options_);
  if (GetParam() != Math::bf16 || !products->description().starts_with("cuDNN 9.19.")) {
    GTEST_SKIP() << "counted in bf16 with cuDNN 9.19";
  }
  products->conv({{32, 10, 10, 512, 512, 3, 1, 1, GetParam()}, ConvPass::forward});
  EXPECT_GT(products->choices().at(0).offered, 50);
}

// What other cards lack stands in docs/gpu.md.
TEST_P(Offer, OtherCardsServeIt) {
  for (const std::string& card : described_cards()) {
    options_.card_description = card_description(card);
    const auto products = make_products(options_);
    const bool lacks = card == "t4" && GetParam() == Math::bf16;
    for (const ConvOffer& offer : list_offers(*products, requests(GetParam(), {32}))) {
      const ConvShape& shape = offer.request.shape;
      const std::string what = card + ": " + to_text(offer.request) + ": " + offer.problem;
      EXPECT_EQ(offer.choice.has_value(), !lacks) << what;
      if (lacks || stored_as(GetParam()) == DType::f32 || shape.in < 64 || shape.height <= 8)
        continue;
      EXPECT_TRUE(offer.choice && offer.choice->tensor_cores) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Offer, testing::ValuesIn(kMaths),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace paceline::cuda
