// What a card may choose instead of what was measured: it has to compute the same.
#include "engine/device/cuda/ways.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "tests/conformance/cuda/on_device.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

// Runs every way on the same operands, and compares it with the first.
class AllWays final : public Products {
 public:
  explicit AllWays(Runtime& runtime) : runtime_(runtime), tuner_(make_gpu_tuner(runtime, "")) {}

  std::size_t own_way(const OwnWays& own) override {
    names.push_back(own.name);
    std::vector<Memory> first, before;
    for (const TensorSize& size : own.sizes) {
      before.push_back(runtime_.device_memory(size.bytes()));
      tuner_->randomize(before.back().data(), size.elements, size.type);
      first.push_back(runtime_.device_memory(size.bytes()));
    }
    for (std::size_t way = 0; way < own.ways; ++way) {
      SCOPED_TRACE(own.name + ", way " + std::to_string(way));
      std::vector<Memory> all;
      Operands operands;
      for (std::size_t i = 0; i < own.sizes.size(); ++i) {
        all.push_back(runtime_.device_memory(own.sizes[i].bytes()));
        std::memset(all[i].data(), 0xFF, all[i].bytes());
        const bool poisoned = own.sizes[i].use == TensorSize::Use::written;
        if (!poisoned) std::memcpy(all[i].data(), before[i].data(), all[i].bytes());
        operands.tensors[i] = all[i].data();
      }
      tuner_->run([&](Stream stream) { own.run(way, operands, stream); });
      for (std::size_t i = 0; i < own.sizes.size(); ++i) {
        if (way == 0) std::memcpy(first[i].data(), all[i].data(), all[i].bytes());
        const ResultDifference found = tuner_->compare(all[i].data(), first[i].data(),
                                                       own.sizes[i].elements, own.sizes[i].type);
        EXPECT_LE(std::sqrt(found.squares / found.reference_squares), 5e-3) << "tensor " << i;
        if (own.sizes[i].use != TensorSize::Use::read) continue;
        EXPECT_EQ(std::memcmp(all[i].data(), before[i].data(), all[i].bytes()), 0) << i;
      }
    }
    return own.ways - 1;
  }
  std::unique_ptr<ConvPlan> conv(const ConvRequest&) override { return nullptr; }
  std::unique_ptr<ConvPlan> conv_with(const ConvRequest&, ConvApart) override { return nullptr; }
  std::unique_ptr<MatmulPlan> matmul(const MatmulShape&) override { return nullptr; }
  std::unique_ptr<AttentionPlan> attention(const AttentionRequest&, AttentionWork) override {
    return nullptr;
  }
  std::string description() const override { return "none"; }

  std::vector<std::string> names;

 private:
  Runtime& runtime_;
  std::unique_ptr<Tuner> tuner_;
};

TEST(EmulatedKernels, EveryWayIsTriedOnWhatItsKernelsNeed) {
  const auto runtime = make_host_runtime();
  AllWays products(*runtime);
  for (const Math math : {Math::fp32, Math::bf16, Math::fp16}) {
    for (const Optimizer optimizer :
         {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad, Optimizer::adam}) {
      EXPECT_EQ(choose_update(*runtime, products, optimizer, 1003, math), 1U);
    }
    EXPECT_EQ(choose_statistics_blocks(*runtime, products, 700, 24, math), kMostNormBlocks);
    for (const bool has_branch : {false, true}) {
      for (const bool masks : {false, true}) {
        choose_gradient_blocks(*runtime, products, 700, 24, math, has_branch, masks);
      }
    }
    for (const bool adds : {false, true}) {
      EXPECT_EQ(choose_pool_gradient(*runtime, products, {nullptr, nullptr, 5, 6, 24, adds}, math),
                1U);
    }
    EXPECT_EQ(choose_pool_gradient(*runtime, products, {nullptr, nullptr, 5, 6, 9, false}, math),
              0U)
        << "no whole vectors";
    if (math == Math::fp16) continue;
    for (const int channels : {40, 37}) choose_layer_norm(*runtime, products, 70, channels, math);
    EXPECT_EQ(choose_layer_norm(*runtime, products, 70, 2000, math), 0U) << "too wide";
    for (const bool adds : {false, true}) {
      choose_layer_norm_gradient(*runtime, products, 70, 40, math, adds);
    }
    EXPECT_EQ(choose_layer_norm_gradient(*runtime, products, 70, 2000, math, false), 0U)
        << "too wide";
    EXPECT_EQ(choose_token_loss(*runtime, products, 5, 300, math), 2U);
  }
  EXPECT_EQ(products.names.size(), 3 * (4 + 1 + 4 + 2) + 2 * 2 + 2 + 2);
  EXPECT_EQ(products.names.front(), "update sgd 1003 f32");
}

// Replicas may choose differently, and must have the same parameters.
TEST(EmulatedKernels, BothWaysUpdateToTheSameBits) {
  const auto runtime = make_host_runtime();
  const Stream stream = runtime->make_stream();
  constexpr std::size_t kCount = 1003;
  const auto scaled = [](int seed) {
    std::vector<float> values = numbers(kCount, seed);
    for (float& value : values) value = value / 7 + 0.9F;
    return values;
  };
  const std::vector<float> w = scaled(1), g = scaled(2), a = scaled(3), b = scaled(4);
  for (const Optimizer optimizer :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad, Optimizer::adam}) {
    for (const bool shaped : {false, true}) {
      UpdateRule rule = update_rule(optimizer, 0.013, 0.9, 7);
      if (shaped) rule.l2 = 0.01;
      const OnDevice<UpdateRule> its(*runtime, {rule});
      const OnDevice<ClipState> clip(*runtime, {{0.3}});
      const OnDevice<float> gradients(*runtime, g);
      std::vector<std::uint8_t> marks(kCount / kDecayGroup + 1);
      for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = i % 3 == 0;
      const OnDevice<std::uint8_t> decays(*runtime, marks);
      std::vector<std::vector<float>> results;
      for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
        const OnDevice<float> weights(*runtime, w), first(*runtime, a), second(*runtime, b);
        const OnDevice<Bf16> narrow(*runtime, std::vector<Bf16>(kCount));
        const int arenas = state_arenas(optimizer);
        run_update(
            *runtime, way,
            UpdateWork<Bf16>{weights.data(), arenas > 0 ? first.data() : nullptr,
                             arenas > 1 ? second.data() : nullptr, gradients.data(), narrow.data(),
                             its.data(), nullptr, shaped ? clip.data() : nullptr,
                             shaped ? decays.data() : nullptr, kCount},
            stream);
        runtime->synchronize_stream(stream);
        std::vector<float> all = weights.values();
        for (const auto* arena : {&first, &second}) {
          const std::vector<float> more = arena->values();
          all.insert(all.end(), more.begin(), more.end());
        }
        for (const Bf16 value : narrow.values()) all.push_back(to_float(value));
        results.push_back(std::move(all));
      }
      EXPECT_EQ(results[0], results[1]) << to_string(optimizer) << (shaped ? ", shaped" : "");
      EXPECT_NE(results[0][0], w[0]);
    }
  }
  runtime->destroy_stream(stream);
}

// A convolution of the sample, as it is or folded: whole numbers, of which every sum is exact.
class Stem {
 public:
  Stem(Runtime& runtime, const ConvShape& plain, int channels)
      : runtime_(runtime), plain_(plain), channels_(channels) {}

  // y, then the gradient of the weights from y's; the last sample is missing.
  std::vector<float> run(bool folded) {
    const Stream stream = runtime_.make_stream();
    const ConvShape s = folded ? fold_shape(plain_, channels_).value() : plain_;
    const auto count = [](auto... sides) { return (std::size_t{1} * ... * std::size_t(sides)); };
    const std::size_t samples = std::size_t(plain_.batch) - 1;
    const std::size_t places = count(plain_.height, plain_.width);
    const std::size_t weights = count(s.out, plain_.kernel, plain_.kernel, channels_);
    const std::size_t reordered_weights = count(s.out, s.kernel, s.kernel, s.in);
    const auto unknown = [&](std::size_t n) { return std::vector<float>(n, NAN); };
    const OnDevice<float> images(runtime_, scaled(samples * places * std::size_t(channels_), 255)),
        w(runtime_, scaled(weights, 1)), gradient(runtime_, unknown(weights)),
        x(runtime_, unknown(count(s.batch, s.height, s.width, s.in))),
        reordered(runtime_, unknown(reordered_weights)), dw(runtime_, unknown(reordered_weights)),
        y(runtime_, unknown(count(s.batch, s.out_height(), s.out_width(), s.out)));
    const WeightLayout layout{plain_.kernel, channels_, s.in, folded ? 2 : 1};
    if (folded) {
      launch_over(
          runtime_,
          FoldInput<float>{nullptr, images.data(), x.data(), samples, 1, plain_.height,
                           plain_.width, channels_, plain_.padding, s.height, s.width, s.in},
          count(s.batch, s.height, s.width), stream);
    } else {
      launch_over(runtime_,
                  CastInput<float>{nullptr, images.data(), x.data(), samples * places, places,
                                   channels_, s.in},
                  count(s.batch, places), stream);
    }
    launch_over(runtime_,
                ReorderWeights<float>{w.data(), reordered.data(), reordered_weights, layout},
                reordered_weights, stream);
    const auto products = make_host_products(runtime_);
    const auto forward = products->conv({s, ConvPass::forward});
    const auto backward = products->conv({s, ConvPass::backward_weights});
    const OnDevice<std::byte> workspace(runtime_, std::vector<std::byte>(64));
    forward->run({x.data(), reordered.data(), y.data(), workspace.data()}, stream);
    backward->run({x.data(), dw.data(), y.data(), workspace.data()}, stream);
    launch_over(runtime_,
                RestoreGradients<float>{dw.data(), gradient.data(), reordered_weights, layout},
                reordered_weights, stream);
    runtime_.synchronize_stream(stream);
    std::vector<float> all = y.values();
    const std::vector<float> more = gradient.values();
    all.insert(all.end(), more.begin(), more.end());
    runtime_.destroy_stream(stream);
    return all;
  }

 private:
  static std::vector<float> scaled(std::size_t count, float by) {
    std::vector<float> values = numbers(count, 3);
    for (float& value : values) value *= by;
    return values;
  }

  Runtime& runtime_;
  ConvShape plain_;
  int channels_;
};

// Of every window and padding, and of odd and even sides.
TEST(EmulatedKernels, AFoldedSampleGivesTheSameConvolution) {
  const auto runtime = make_host_runtime();
  for (const int channels : {1, 3, 4}) {
    for (int kernel = 1; kernel <= 7; ++kernel) {
      for (int padding = 0; padding <= 3 && padding <= kernel; ++padding) {
        for (const auto& [height, width] : {std::pair{9, 12}, {8, 7}}) {
          SCOPED_TRACE(std::to_string(channels) + " channels, a window of " +
                       std::to_string(kernel) + ", padding " + std::to_string(padding) + ", " +
                       std::to_string(height) + " x " + std::to_string(width));
          const ConvShape plain{3,         height, width, padded_channels(Math::fp32, channels),
                                2,         kernel, 2,     padding,
                                Math::fp32};
          Stem stem(*runtime, plain, channels);
          ASSERT_EQ(stem.run(true), stem.run(false));
        }
      }
    }
  }
  EXPECT_FALSE(fold_shape({3, 9, 9, 8, 2, 3, 1, 1, Math::bf16}, 3)) << "of stride 1";
  EXPECT_FALSE(fold_shape({3, 9, 9, 8, 2, 3, 2, 1, Math::bf16}, 8)) << "of many channels";
}

TEST(EmulatedKernels, LogitsAreTakenInPiecesThatFit) {
  constexpr std::size_t kRow = 100'608, kMuch = std::size_t{140} << 30;  // of GPT-2, in 16 bits
  EXPECT_EQ(logit_rows(32 * 1024, kRow, kMuch), 8192U);
  EXPECT_EQ(logit_rows(1000, kRow, kMuch), 1000U);
  EXPECT_EQ(logit_rows(12 * 1000, kRow, kMuch), 6000U);
  EXPECT_EQ(logit_rows(8209, kRow, kMuch), 8192U) << "a prime number: a rest is left";
  EXPECT_EQ(logit_rows(32 * 1024, kRow, std::size_t{2} << 30), 4096U);
  EXPECT_EQ(logit_rows(32 * 1024, kRow, 0), 256U);
}

}  // namespace
}  // namespace paceline::cuda
