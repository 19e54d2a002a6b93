// cuDNN serves attention by kernels on tensor cores, which compile, on every described card that
// has bf16; our kernels are beside them, and alone in fp32.

#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"
#include "tests/conformance/device_cuda/driver.h"

namespace paceline::cuda {
namespace {

using AttentionOffer = CompilingTest;

// Of gpt2-124m, and of a last batch of gpt-tiny.
const AttentionRequest kRequests[] = {{4, 1024, 12, 64, Math::bf16}, {3, 128, 8, 32, Math::bf16}};

Offered offer(const std::shared_ptr<Session>& session, const AttentionRequest& request,
              bool deterministic = false) {
  return attention_offer(session, request, {request.math, deterministic, true},
                         [](const AttentionOperands&, Stream) {});
}

void expect_tensor_cores(const std::shared_ptr<Session>& session, AttentionRequest request) {
  for (int kind = 0; kind < 4; ++kind) {
    request.backward = (kind & 1) != 0;
    const bool deterministic = (kind & 2) != 0;
    const Offered offered = offer(session, request, deterministic);
    ASSERT_GE(offered.candidates.size(), 2U) << to_text(request) << ": " << offered.refused;
    EXPECT_EQ(offered.candidates[0].recipe.library, Recipe::Library::own);
    EXPECT_TRUE(offered.candidates[1].tensor_cores);
    try {
      offered.candidates[1].build();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("cuLibraryLoadData"), std::string::npos)
          << to_text(request) << ": " << error.what();
    }
  }
}

TEST_F(AttentionOffer, KernelsOnTensorCoresCompile) {
  for (const AttentionRequest& request : kRequests) expect_tensor_cores(session_, request);
}

TEST_F(AttentionOffer, EveryCardWithBf16HasThem) {
  const Libraries libraries{LibraryNames{}};
  for (const std::string& card : described_cards()) {
    SCOPED_TRACE(card);
    const auto session = std::make_shared<Session>(libraries.cudnn, card_description(card));
    if (card != "t4") {
      expect_tensor_cores(session, kRequests[0]);
    } else {
      EXPECT_EQ(offer(session, kRequests[0]).candidates.size(), 1U);
    }
  }
}

TEST_F(AttentionOffer, OursAreAloneWhereTheLibraryWouldRoundOrCannotAdd) {
  AttentionRequest request = kRequests[0];
  request.backward = request.accumulates = true;
  EXPECT_EQ(offer(session_, request).candidates.size(), 1U);
  for (const Math math : {Math::fp32, Math::tf32}) {
    EXPECT_EQ(offer(session_, {4, 1024, 12, 64, math}).candidates.size(), 1U);
  }
}

}  // namespace
}  // namespace paceline::cuda
