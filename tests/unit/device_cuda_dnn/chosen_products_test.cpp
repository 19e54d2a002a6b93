// The whole, on a described H200 with a tuner that only counts. Skipped where cuDNN is missing.
#include "engine/device/cuda/dnn/chosen_products.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/device/cuda/products.h"
#include "tests/support/described_cards/described_cards.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/device_cuda_dnn/fake_tuner.h"

namespace paceline::cuda {
namespace {

const ConvShape kShape{32, 75, 75, 64, 64, 3, 1, 1, Math::fp32};

class Products : public testing::Test {
 protected:
  void SetUp() override {
    if (described_cards().empty()) GTEST_SKIP() << "built with a cuDNN that describes no cards";
    options_.card_description = card_description("h200");
    try {
      Libraries{LibraryNames{}};
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    tuner_.runs = false;
    tuner_.seconds = [this] { return 1e-3 * ++calls_; };
    tuner_.name = "NVIDIA H200";
    kept_ = options_;
    kept_.tuner = {std::shared_ptr<void>(), &tuner_};  // not owned
    kept_.choices_file = scratch_.path() / "choices.json";
  }

  Choice choose(const ProductsOptions& options, const ConvRequest& request) {
    const auto products = make_products(options);
    products->conv(request);
    return products->choices().at(0);
  }

  // Leaves what a process leaves that is killed in the first way of `trying`.
  void end_while_trying(const std::string& part, const std::function<void()>& trying) {
    std::string marked;
    tuner_.seconds = [&] {
      for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
        if (marked.empty()) marked = read_text(entry.path());
      }
      return 1e-3;
    };
    trying();
    tuner_.seconds = [] { return 1e-3; };
    expect_parts(marked, {part});
    std::filesystem::remove(kept_.choices_file);
    std::ofstream(kept_.choices_file.string() + ".trying-abcdef") << marked;
  }

  Scratch scratch_;
  FakeTuner tuner_;
  int calls_ = 0;
  ProductsOptions options_, kept_;
};

TEST_F(Products, AreChosenOnceForARequest) {
  const auto products = make_products(kept_);
  const auto first = products->conv({kShape, ConvPass::forward});
  const int timed = tuner_.timed_runs;
  EXPECT_GT(timed, 0);
  const auto second = products->conv({kShape, ConvPass::forward});
  EXPECT_EQ(tuner_.timed_runs, timed);
  EXPECT_EQ(first->implementation(), second->implementation());
  EXPECT_EQ(products->choices().size(), 1U);
}

TEST_F(Products, KeptInAFileAreNotMeasuredAgain) {
  for (const ConvPass pass :
       {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const Choice measured = choose(kept_, {kShape, pass});
    EXPECT_EQ(measured.origin, Choice::Origin::measured);
    const int timed = tuner_.timed_runs;
    const Choice read = choose(kept_, {kShape, pass});
    EXPECT_EQ(read.origin, Choice::Origin::file);
    EXPECT_EQ(read.recipe, measured.recipe);
    EXPECT_EQ(read.workspace_bytes, measured.workspace_bytes);
    EXPECT_EQ(tuner_.timed_runs, timed);
  }
}

// What broke the card is named and left out by the next process, which then chooses among the
// others.
TEST_F(Products, ThatBrokeTheCardCostThemselvesOnly) {
  const ConvRequest request{kShape, ConvPass::forward};
  int runs = 0;
  tuner_.works = [&] { return ++runs < 5; };  // the first way passes, the second breaks the card
  expect_error(ErrorKind::internal, {"broke the GPU's context", "run it again", "left out"},
               [&] { make_products(kept_)->conv(request); });
  tuner_.works = [] { return true; };
  const Choice all = choose(options_, request), fewer = choose(kept_, request);
  EXPECT_EQ(fewer.origin, Choice::Origin::measured);
  EXPECT_EQ(fewer.usable, all.usable - 1);
  expect_parts(read_text(kept_.choices_file), {"\"excluded\""});
  runs = 0;
  tuner_.works = [&] { return ++runs < 5; };
  kept_.choices_file.clear();
  expect_error(ErrorKind::internal, {"broke the GPU's context", "report it"},
               [&] { make_products(kept_)->conv(request); });
}

// As if the first process hung in the first way, which it marked, and were killed.
TEST_F(Products, ThatDidNotReturnAreLeftOut) {
  const ConvRequest request{kShape, ConvPass::forward};
  const Choice first = choose(options_, request);
  end_while_trying(to_text(request), [&] { choose(kept_, request); });
  const Choice fewer = choose(kept_, request);
  EXPECT_EQ(fewer.origin, Choice::Origin::measured);
  EXPECT_EQ(fewer.usable, first.usable - 1);
  EXPECT_NE(fewer.recipe, first.recipe);
  expect_parts(read_text(kept_.choices_file), {"did not return"});
}

// Kernels of ours are the last resort: they stay, whatever ended a run that tried them.
TEST_F(Products, OfOursAreNeverLeftOut) {
  ConvRequest request{kShape, ConvPass::forward, false, Epilogue::bias};
  request.shape.kernel = 1;
  request.shape.padding = 0;
  const ConvApart apart{[](const ConvOperands&, Stream) {}, 0, "some product"};
  end_while_trying("own", [&] { make_products(kept_)->conv_with(request, apart); });
  EXPECT_EQ(make_products(kept_)->conv_with(request, apart)->implementation(),
            "some product; own kernels");
}

// Where the library offers nothing, as for a card without a driver, our kernels are the choice.
TEST_F(Products, OfAttentionAreOursOrTheLibrarys) {
  const AttentionRequest forward{2, 128, 12, 64, Math::bf16};
  AttentionRequest backward = forward;
  backward.backward = true;
  std::vector<AttentionOperands> seen;
  const AttentionWork own = [&](const AttentionOperands& operands, Stream) {
    seen.push_back(operands);
  };
  for (const Choice::Origin origin : {Choice::Origin::measured, Choice::Origin::file}) {
    const auto products = make_products(kept_);
    for (const AttentionRequest& request : {forward, backward}) {
      const auto plan = products->attention(request, own);
      expect_parts(plan->implementation(), {"own kernels"});
      EXPECT_EQ(products->choices().back().origin, origin);
      int memory[7];
      plan->run({memory, memory + 1, memory + 2, memory + 3, memory + 4, memory + 5, memory + 6},
                nullptr);
      EXPECT_EQ(seen.back().sums, memory + 2);
      EXPECT_EQ(seen.back().qkv_gradient, request.backward ? memory + 5 : nullptr);
    }
  }
}

// The fastest of our ways is taken where ways are measured, and kept.
TEST_F(Products, OfOursInSeveralWaysAreMeasured) {
  int way_run = -1;
  const OwnWays own{"sums",
                    {{8}},
                    Math::bf16,
                    8,
                    3,
                    [&](std::size_t way, const Operands&, Stream) {
                      way_run = static_cast<int>(way); }};
  tuner_.runs = true;
  tuner_.seconds = [&] { return way_run == 1 ? 1e-3 : 2e-3; };
  EXPECT_EQ(make_products(options_)->own_way(own), 0U);
  EXPECT_EQ(make_products(kept_)->own_way(own), 1U);
  const int timed = tuner_.timed_runs;
  const auto again = make_products(kept_);
  EXPECT_EQ(again->own_way(own), 1U);
  EXPECT_EQ(again->choices().back().recipe.text(), "own kernels, way 2");
  EXPECT_EQ(tuner_.timed_runs, timed);
  OwnWays fewer = own;
  fewer.ways = 1;
  EXPECT_EQ(make_products(kept_)->own_way(fewer), 0U);
  OwnWays none = own;
  none.name = "what does not fit";
  none.run = [](std::size_t, const Operands&, Stream) { throw Error(ErrorKind::usage, "full"); };
  EXPECT_EQ(make_products(kept_)->own_way(none), 0U);
}

TEST_F(Products, WithEpiloguesAreTheLibrarysOrApart) {
  ConvRequest request{kShape, ConvPass::forward, false, Epilogue::bias_add};
  std::vector<ConvOperands> seen;
  const ConvApart apart{[&](const ConvOperands& operands, Stream) { seen.push_back(operands); },
                        4096, "some product"};
  const auto products = make_products(kept_);
  expect_error(ErrorKind::internal, {"not a convolution"},
               [&] { products->conv_with(request, apart); });  // its window has nine pixels
  request.shape.kernel = 1;
  request.shape.padding = 0;
  expect_error(ErrorKind::internal, {"not a convolution"}, [&] { products->conv(request); });
  for (const Choice::Origin origin : {Choice::Origin::measured, Choice::Origin::file}) {
    const auto again = make_products(kept_);
    const auto plan = again->conv_with(request, apart);
    EXPECT_EQ(plan->implementation(), "some product; own kernels");
    EXPECT_EQ(plan->workspace_bytes(), 4096U);
    EXPECT_EQ(again->choices().back().origin, origin);
    int memory[6];
    plan->run({memory, memory + 1, memory + 2, memory + 3, memory + 4, memory + 5}, nullptr);
    EXPECT_EQ(seen.back().y, memory + 2);
    EXPECT_EQ(seen.back().workspace, memory + 3);
    EXPECT_EQ(seen.back().bias, memory + 4);
    EXPECT_EQ(seen.back().before, memory + 5);
  }
}

// A run that is ended before its end has written what it measured.
TEST_F(Products, AreKeptWhileOthersAreChosen) {
  const auto products = make_products(kept_);
  products->conv({kShape, ConvPass::forward});
  expect_parts(read_text(kept_.choices_file), {to_text(ConvRequest{kShape, ConvPass::forward})});
}

TEST_F(Products, OfOtherRulesOrCardsAreChosenAgain) {
  const ConvRequest request{kShape, ConvPass::forward};
  choose(kept_, request);
  ProductsOptions other = kept_;
  other.deterministic = true;
  EXPECT_EQ(choose(other, request).origin, Choice::Origin::measured);
  EXPECT_EQ(choose(other, request).origin, Choice::Origin::file);
  other.thorough = true;
  EXPECT_EQ(choose(other, request).origin, Choice::Origin::measured);
  other.workspace_limit /= 2;
  EXPECT_EQ(choose(other, request).origin, Choice::Origin::measured);
  tuner_.name = "NVIDIA H100";
  EXPECT_EQ(choose(kept_, request).origin, Choice::Origin::measured);
}

TEST_F(Products, ThatArePutIntoTheFileByHandStillFollowTheRules) {
  ConvRequest request{kShape, ConvPass::forward};
  request.shape.math = Math::tf32;
  const Choice tf32 = choose(kept_, request);
  ASSERT_TRUE(tf32.tensor_cores);
  std::string text = read_text(kept_.choices_file);
  for (std::size_t at; (at = text.find("tf32")) != std::string::npos;)
    text[at] = 'f', text[at + 1] = 'p';
  std::ofstream(kept_.choices_file) << text;
  const Choice fp32 = choose(kept_, {kShape, ConvPass::forward});
  EXPECT_EQ(fp32.origin, Choice::Origin::measured);
  EXPECT_FALSE(fp32.tensor_cores);
  EXPECT_NE(fp32.recipe, tf32.recipe);
}

TEST_F(Products, OfAnotherLibraryThanTheirsAreChosenAgain) {
  const ConvRequest request{kShape, ConvPass::forward};
  choose(kept_, request);
  std::string text = read_text(kept_.choices_file);
  text.replace(text.find("cuDNN\""), 5, "cuBLASLt");
  text.replace(text.find("\"knobs\""), 7,
               "\"algorithm\": \"" + std::string(128, '0') + "\", \"knobs\"");
  std::ofstream(kept_.choices_file) << text;
  EXPECT_EQ(choose(kept_, request).origin, Choice::Origin::measured);
}

TEST_F(Products, ThatAreDeterministicNeverDependOnTheClock) {
  ProductsOptions options = kept_;
  options.deterministic = true;
  options.choices_file.clear();
  const Choice choice = choose(options, {kShape, ConvPass::backward_data});
  EXPECT_EQ(choice.origin, Choice::Origin::heuristic);
  EXPECT_EQ(choice.seconds, 0);
  EXPECT_EQ(tuner_.captured, 1);  // the first, and no other
}

TEST_F(Products, ThatAreDeterministicAreFewer) {
  ProductsOptions options = options_;
  const ConvRequest request{kShape, ConvPass::backward_weights};
  const Choice any = choose(options, request);
  options.deterministic = true;
  const Choice deterministic = choose(options, request);
  EXPECT_EQ(any.offered, deterministic.offered);
  EXPECT_LT(deterministic.usable, any.usable);
}

TEST_F(Products, WithoutACardDoNotRun) {
  const auto products = make_products(options_);
  const auto plan = products->conv({kShape, ConvPass::forward});
  char memory[64];
  expect_error(ErrorKind::usage, {"made from a description"}, [&] {
    plan->run({memory, memory, memory, memory}, nullptr);
  });
  expect_error(ErrorKind::usage, {"cuBLASLt cannot check", "product 64x784x512 fp32"}, [&] {
    products->matmul({64, 784, 512});
  });
}

TEST_F(Products, OutliveTheirMaker) {
  auto products = make_products(options_);
  const auto plan = products->conv({kShape, ConvPass::forward});
  products.reset();
  expect_parts(plan->implementation(), {"cuDNN engine"});
}

TEST_F(Products, ThatNothingServesReportWhy) {
  ConvRequest huge{kShape, ConvPass::backward_data};
  huge.shape.in = std::numeric_limits<int>::max();
  const auto products = make_products(options_);
  const auto offers = list_offers(*products, {huge, {kShape, ConvPass::forward}});
  EXPECT_FALSE(offers[0].choice);
  expect_parts(offers[0].problem, {"no way to compute backward_data 32x75x75x2147483647"});
  ASSERT_TRUE(offers[1].choice);
  const std::string table = format_table(offers);
  expect_parts(table, {offers[0].problem, "forward 32x75x75x64 to 64 3x3 / 1 + 1 fp32",
                       offers[1].choice->recipe.text()});
}

TEST_F(Products, AreListedWithTheirTimes) {
  const auto products = make_products(kept_);
  products->conv({kShape, ConvPass::forward});
  const Choice& choice = products->choices().at(0);
  const std::string table = format_table(products->choices());
  expect_parts(table, {choice.request, choice.recipe.text(), choice.runner_up,
                       format_seconds(choice.seconds), format_seconds(choice.runner_up_seconds)});
}

TEST_F(Products, OfABadDescriptionAreRefused) {
  ProductsOptions options = options_;
  options.card_description = "{\"deviceVer\": ";
  EXPECT_THROW(make_products(options), Error);
}

TEST(CardDescriptions, AreFoundByName) {
  expect_parts(card_description("h200"), {"NVIDIA H200"});
  expect_error(ErrorKind::usage, {"h2000", "h200"}, [] { card_description("h2000"); });
}

}  // namespace
}  // namespace paceline::cuda
