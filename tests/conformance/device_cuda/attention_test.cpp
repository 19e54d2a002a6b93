// Every way that cuDNN offers for attention, on a card against its definition: forward and
// backward, poisoned outputs and workspace, and again from a graph.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"
#include "engine/device/cuda/dnn/session.h"
#include "tests/conformance/device_cuda/card.h"
#include "tests/conformance/device_cuda/reference.h"

namespace paceline::cuda {
namespace {

constexpr int kRoundings = 3;  // of weights, of gradients of scores, and of the result

// Places of `out`, of a part of `qkv` and of a row, in their memory.
struct Layout {
  AttentionRequest of;

  std::size_t place(int sample, int place, int head, int parts = 1, int part = 0) const {
    const int row = (sample * of.places + place) * parts + part;
    return static_cast<std::size_t>((row * of.heads + head) * of.width);
  }
  std::size_t row(int sample, int place, int head) const {
    return static_cast<std::size_t>((sample * of.heads + head) * of.places + place);
  }
  std::size_t rows() const { return std::size_t{1} * of.samples * of.places * of.heads; }
  std::size_t elements() const { return rows() * static_cast<std::size_t>(of.width); }
};

Reference zeros(std::size_t count) {
  return {std::vector<double>(count, 0), std::vector<double>(count, 0)};
}

void add(Reference& to, std::size_t at, double factor, double value, double magnitude) {
  to.values[at] += factor * value;
  to.magnitudes[at] += std::abs(factor) * magnitude;
}

// All in double, row by row.
class Attention {
 public:
  Attention(const AttentionRequest& request, const std::vector<float>& qkv)
      : at_{request},
        qkv_(qkv),
        scale_(1 / std::sqrt(static_cast<double>(request.width))),
        out(zeros(at_.elements())),
        sums(zeros(at_.rows())),
        products(zeros(at_.rows())),
        gradient(zeros(3 * at_.elements())) {}

  void forward() {
    each_row([this](int n, int h, int row) {
      const std::vector<double> scores = row_scores(n, h, row);
      double total = 0;
      for (const double score : scores) total += std::exp(score);
      const std::size_t r = at_.row(n, row, h);
      sums.values[r] = std::log(total);
      sums.magnitudes[r] = 1 + std::abs(sums.values[r]);
      for (int column = 0; column <= row; ++column) {
        const double weight = std::exp(scores[static_cast<std::size_t>(column)]) / total;
        for (int i = 0; i < at_.of.width; ++i) {
          const double value = part(n, column, h, 2, i);
          add(out, at_.place(n, row, h) + static_cast<std::size_t>(i), weight, value,
              std::abs(value));
        }
      }
    });
  }

  // `given_out` and `given_sums` are what a forward left.
  void backward(const std::vector<float>& given_out, const std::vector<float>& given_sums,
                const std::vector<float>& out_gradient) {
    each_row([&](int n, int h, int row) {
      const std::size_t r = at_.row(n, row, h), o = at_.place(n, row, h);
      for (std::size_t i = 0; i < static_cast<std::size_t>(at_.of.width); ++i) {
        add(products, r, given_out[o + i], out_gradient[o + i], std::abs(out_gradient[o + i]));
      }
      const std::vector<double> scores = row_scores(n, h, row);
      for (int column = 0; column <= row; ++column) {
        const double weight = std::exp(scores[static_cast<std::size_t>(column)] - given_sums[r]);
        double of_weight = 0, magnitude = products.magnitudes[r];
        for (int i = 0; i < at_.of.width; ++i) {
          const double of_out = out_gradient[o + static_cast<std::size_t>(i)];
          const double term = of_out * part(n, column, h, 2, i);
          of_weight += term;
          magnitude += std::abs(term);
          add(gradient, gradient_at(n, column, h, 2, i), weight, of_out, std::abs(of_out));
        }
        const double of_score = scale_ * weight * (of_weight - products.values[r]);
        magnitude *= scale_ * weight;
        for (int i = 0; i < at_.of.width; ++i) {
          add(gradient, gradient_at(n, row, h, 0, i), part(n, column, h, 1, i), of_score,
              magnitude);
          add(gradient, gradient_at(n, column, h, 1, i), part(n, row, h, 0, i), of_score,
              magnitude);
        }
      }
    });
  }

 private:
  Layout at_;
  const std::vector<float>& qkv_;
  double scale_;

 public:
  Reference out, sums, products, gradient;

 private:
  template <typename Work>
  void each_row(const Work& work) const {
    for (int n = 0; n < at_.of.samples; ++n) {
      for (int h = 0; h < at_.of.heads; ++h) {
        for (int row = 0; row < at_.of.places; ++row) work(n, h, row);
      }
    }
  }
  std::size_t gradient_at(int n, int place, int h, int index, int i) const {
    return at_.place(n, place, h, 3, index) + static_cast<std::size_t>(i);
  }
  double part(int n, int place, int h, int index, int i) const {
    return static_cast<double>(qkv_[gradient_at(n, place, h, index, i)]);
  }
  std::vector<double> row_scores(int n, int h, int row) const {
    std::vector<double> scores;
    for (int column = 0; column <= row; ++column) {
      double score = 0;
      for (int i = 0; i < at_.of.width; ++i)
        score += part(n, row, h, 0, i) * part(n, column, h, 1, i);
      scores.push_back(score * scale_);
    }
    return scores;
  }
};

std::vector<float> rounded(const std::vector<double>& values, DType type) {
  const std::vector<float> narrow(values.begin(), values.end());
  return loaded(stored(narrow, type), type);
}

struct Case {
  AttentionRequest request;
  bool deterministic = false;
};

class AttentionOnCard : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(AttentionOnCard, EveryWayIsRight) {
  const AttentionRequest& request = GetParam().request;
  const Layout layout{request};
  const DType type = stored_as(request.math);
  const std::vector<float> qkv = random_values(3 * layout.elements(), 1, type);
  const std::vector<float> of_out = random_values(layout.elements(), 2, type);
  Attention wanted(request, qkv);
  wanted.forward();
  const std::vector<float> out = rounded(wanted.out.values, type);
  const std::vector<float> sums = rounded(wanted.sums.values, DType::f32);
  if (request.backward) wanted.backward(out, sums, of_out);

  const Libraries libraries{LibraryNames{}};
  const auto session = std::make_shared<Session>(libraries.cudnn, "");
  const Offered offered =
      attention_offer(session, request, {request.math, GetParam().deterministic, true},
                      [](const AttentionOperands&, Stream) {});
  int tried = 0;
  for (const Candidate& candidate : offered.candidates) {
    if (candidate.recipe.library == Recipe::Library::own) continue;
    SCOPED_TRACE(candidate.recipe.text());
    std::shared_ptr<Implementation> implementation;
    try {
      implementation = candidate.build();
    } catch (const Error& error) {
      std::cout << candidate.recipe.text() << ": " << error.what() << '\n';
      continue;  // not supported after all
    }
    ++tried;
    for (const bool as_graph : {false, true}) {
      CardMemory of_qkv(qkv.size() * size_of(type)), of_result(out.size() * size_of(type)),
          of_sums(sums.size() * 4), of_gradient(out.size() * size_of(type)),
          of_products(sums.size() * 4), of_qkv_gradient(qkv.size() * size_of(type)),
          workspace(implementation->workspace_bytes());
      of_qkv.write(stored(qkv, type));
      of_gradient.write(stored(of_out, type));
      for (CardMemory* one : {&of_result, &of_sums, &of_products, &of_qkv_gradient, &workspace}) {
        one->poison();
      }
      if (request.backward) {
        of_result.write(stored(out, type));
        of_sums.write(stored(sums, DType::f32));
      }
      CardStream stream;
      const Operands operands = make_operands(request, {.qkv = of_qkv.data(),
                                                        .out = of_result.data(),
                                                        .sums = of_sums.data(),
                                                        .out_gradient = of_gradient.data(),
                                                        .products = of_products.data(),
                                                        .qkv_gradient = of_qkv_gradient.data(),
                                                        .workspace = workspace.data()});
      const auto work = [&](Stream on) { implementation->run(operands, on); };
      as_graph ? stream.run_as_graph(work) : stream.run(work);
      const auto expect = [&](const CardMemory& found, DType stored_type, const Reference& right,
                              const char* what) {
        EXPECT_EQ(difference(loaded(found.read(), stored_type), right, request.math, kRoundings),
                  "")
            << what;
      };
      if (request.backward) {
        expect(of_products, DType::f32, wanted.products, "products");
        expect(of_qkv_gradient, type, wanted.gradient, "gradient of queries, keys and values");
      } else {
        expect(of_result, type, wanted.out, "result");
        expect(of_sums, DType::f32, wanted.sums, "sums");
      }
    }
  }
  EXPECT_GT(tried, 0) << offered.refused;
}

// What these tests measure by, on any machine: its gradients are those of small steps.
TEST(AttentionReference, IsTheDefinition) {
  const AttentionRequest request{2, 5, 2, 4, Math::fp32, true};
  const Layout layout{request};
  std::vector<float> qkv = random_values(3 * layout.elements(), 1, DType::f32);
  const std::vector<float> of_out = random_values(layout.elements(), 2, DType::f32);
  const auto objective = [&] {
    Attention here(request, qkv);
    here.forward();
    double sum = 0;
    for (std::size_t i = 0; i < of_out.size(); ++i) sum += here.out.values[i] * of_out[i];
    return sum;
  };
  Attention right(request, qkv);
  right.forward();
  right.backward(rounded(right.out.values, DType::f32), rounded(right.sums.values, DType::f32),
                 of_out);
  constexpr float kStep = 0x1p-8F;
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    const float before = qkv[i];
    qkv[i] = before + kStep;
    const double above = objective();
    qkv[i] = before - kStep;
    const double below = objective();
    qkv[i] = before;
    EXPECT_NEAR(right.gradient.values[i], (above - below) / (2 * kStep), 1e-4) << i;
  }
  EXPECT_NEAR(right.out.values[0], static_cast<double>(qkv[layout.place(0, 0, 0, 3, 2)]), 1e-6);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (AttentionRequest request :
       {AttentionRequest{2, 256, 3, 64, Math::bf16}, AttentionRequest{3, 128, 8, 32, Math::bf16}}) {
    for (const bool deterministic : {false, true}) {
      for (const bool backward : {false, true}) {
        request.backward = backward;
        all.push_back({request, deterministic});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionOnCard, testing::ValuesIn(cases()), [](const auto& info) {
  const Case& one = info.param;
  return fmt::format("{}_heads_of_{}{}", one.request.backward ? "backward" : "forward",
                     one.request.width, one.deterministic ? "_deterministic" : "");
});

}  // namespace
}  // namespace paceline::cuda
