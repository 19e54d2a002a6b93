// Every way that the libraries offer for small convolutions, and matrix products, on a card against
// their definition: fresh inputs, poisoned outputs and workspace, and the same bits from a graph.
#include "engine/device/cuda/products.h"

#include <gtest/gtest.h>

#include <iostream>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/blas.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"
#include "engine/device/cuda/dnn/session.h"
#include "tests/conformance/device_cuda/card.h"
#include "tests/conformance/device_cuda/reference.h"

namespace paceline::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;

std::vector<ConvRequest> conv_requests() {
  std::vector<ConvRequest> all;
  for (const Math math : {Math::fp32, Math::tf32, Math::bf16, Math::fp16}) {
    for (const ConvShape& shape :
         {ConvShape{2, 10, 12, 32, 16, 1, 1, 0, math}, ConvShape{2, 9, 9, 16, 24, 3, 1, 1, math},
          ConvShape{4, 14, 14, 64, 64, 3, 1, 1, math}, ConvShape{3, 11, 9, 16, 32, 3, 2, 1, math},
          ConvShape{2, 8, 8, 32, 64, 1, 2, 0, math}, ConvShape{4, 7, 7, 256, 64, 1, 1, 0, math},
          ConvShape{2, 30, 30, 8, 64, 7, 2, 3, math}}) {
      all.push_back({shape, ConvPass::forward});
      all.push_back({shape, ConvPass::backward_data});
      all.push_back({shape, ConvPass::backward_data, true});
      all.push_back({shape, ConvPass::backward_weights});
      if (shape.kernel != 1 || shape.stride != 1) continue;
      all.push_back({shape, ConvPass::forward, false, Epilogue::bias});
      all.push_back({shape, ConvPass::forward, false, Epilogue::bias_add});
      all.push_back({shape, ConvPass::forward, false, Epilogue::bias_gelu});
      all.push_back({shape, ConvPass::backward_data, false, Epilogue::gelu_gradient});
      all.push_back({shape, ConvPass::backward_weights, false, Epilogue::left_gradient});
    }
  }
  return all;
}

class ConvOnCard : public testing::TestWithParam<ConvRequest> {
 protected:
  void SetUp() override {
    if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
    const ConvRequest& request = GetParam();
    const ConvShape& shape = request.shape;
    type_ = stored_as(shape.math);
    const auto elements = [](auto... sides) { return (std::size_t{1} * ... * std::size_t(sides)); };
    x_ = random_values(elements(shape.batch, shape.height, shape.width, shape.in), 1, type_);
    w_ = random_values(elements(shape.out, shape.kernel, shape.kernel, shape.in), 2, type_);
    y_ = random_values(elements(shape.batch, shape.out_height(), shape.out_width(), shape.out), 3,
                       type_);
    wanted_ = convolve(request, x_, w_, y_, result());
    bias_ = random_values(std::size_t(shape.out), 4, type_);
    before_ = random_values(result().size(), 5, type_);
    const bool sums_y = request.epilogue == Epilogue::left_gradient;
    finish(wanted_, request.epilogue, bias_, sums_y ? y_ : before_);
  }

  // What stands where the result will be.
  const std::vector<float>& result() const {
    return GetParam().pass == ConvPass::forward         ? y_
           : GetParam().pass == ConvPass::backward_data ? x_
                                                        : w_;
  }

  // The result as it lies on the card after one run on fresh operands, with what is written before
  // GELU, or into the vector, behind it.
  std::vector<std::byte> run(Implementation& implementation, bool as_graph) {
    CardMemory x(x_.size() * size_of(type_)), w(w_.size() * size_of(type_)),
        y(y_.size() * size_of(type_)), workspace(implementation.workspace_bytes()),
        bias(bias_.size() * size_of(type_)), before(before_.size() * size_of(type_));
    bias.write(stored(bias_, type_));
    before.write(stored(before_, type_));
    const bool writes_before = GetParam().epilogue == Epilogue::bias_gelu;
    const bool writes_bias = writes_vector(GetParam().epilogue);
    if (writes_before) before.poison();
    if (writes_bias) bias.poison();
    x.write(stored(x_, type_));
    w.write(stored(w_, type_));
    y.write(stored(y_, type_));
    workspace.poison();
    CardMemory& out = GetParam().pass == ConvPass::forward         ? y
                      : GetParam().pass == ConvPass::backward_data ? x
                                                                   : w;
    if (!GetParam().accumulates) out.poison();
    const Operands operands = make_operands(
        GetParam(), {x.data(), w.data(), y.data(), workspace.data(), bias.data(), before.data()});
    CardStream stream;
    const auto work = [&](Stream on) { implementation.run(operands, on); };
    as_graph ? stream.run_as_graph(work) : stream.run(work);
    std::vector<std::byte> results = out.read();
    if (!writes_before && !writes_bias) return results;
    const std::vector<std::byte> more = writes_bias ? bias.read() : before.read();
    results.insert(results.end(), more.begin(), more.end());
    return results;
  }

  DType type_ = DType::f32;
  std::vector<float> x_, w_, y_, bias_, before_;
  Reference wanted_;
};

TEST_P(ConvOnCard, EveryWayIsRight) {
  const ConvRequest& request = GetParam();
  const Libraries libraries{LibraryNames{}};
  const auto session = std::make_shared<Session>(libraries.cudnn, "");
  const auto blas = std::make_shared<CublasLt>(libraries.cublas_lt);
  const Math math = request.shape.math;
  std::vector<Candidate> candidates, repeatable;
  if (request.epilogue == Epilogue::none) {
    candidates = cudnn_offer(session, request, {math, false, false}).candidates;
    repeatable = cudnn_offer(session, request, {math, true, false}).candidates;
  }
  if (const auto product = find_product(request)) {
    for (const Candidate& one : cublas_offer(blas, *product, kMostWorkspace).candidates) {
      candidates.push_back(one);
      repeatable.push_back(one);
    }
  }
  int tried = 0;
  for (const Candidate& candidate : candidates) {
    SCOPED_TRACE(candidate.recipe.text());
    std::shared_ptr<Implementation> implementation;
    try {
      implementation = candidate.build();
    } catch (const Error&) {
      continue;  // not supported after all
    }
    if (implementation->workspace_bytes() > kMostWorkspace) continue;
    ++tried;
    const std::vector<std::byte> result = run(*implementation, false);
    EXPECT_EQ(difference(loaded(result, type_), wanted_, math), "");
    const bool repeats =
        std::any_of(repeatable.begin(), repeatable.end(),
                    [&](const Candidate& one) { return one.recipe == candidate.recipe; });
    const std::vector<std::byte> of_graph = run(*implementation, true);
    if (repeats) {
      EXPECT_EQ(result, of_graph);
    } else {
      EXPECT_EQ(difference(loaded(of_graph, type_), wanted_, math), "");
    }
  }
  // Of epilogues, only those of 16-bit networks of tokens have to be offered: for the others there
  // are kernels of ours.
  const bool has_to = request.epilogue == Epilogue::none || math == Math::bf16;
  EXPECT_GE(tried, has_to ? 1 : 0);
}

std::string test_name(const testing::TestParamInfo<ConvRequest>& info) {
  std::string name = to_text(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ConvOnCard, testing::ValuesIn(conv_requests()), test_name);

std::vector<float> transposed(const std::vector<float>& from, int rows, int columns) {
  std::vector<float> to(from.size());
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      to[std::size_t(c * rows + r)] = from[std::size_t(r * columns + c)];
    }
  }
  return to;
}

// As a convolution of one pixel a row, whose weights are `right`, transposed.
Reference multiply(const MatmulShape& shape, const std::vector<float>& left,
                   const std::vector<float>& right, const std::vector<float>& out) {
  const ConvRequest request{
      {shape.m, 1, 1, shape.k, shape.n}, ConvPass::forward, shape.accumulates};
  return convolve(request, left, transposed(right, shape.k, shape.n), {}, out);
}

std::string matmul_difference(ChosenProducts& products, const MatmulShape& shape) {
  const auto values = [](int rows, int columns, unsigned seed) {
    return random_values(std::size_t(rows) * std::size_t(columns), seed, DType::f32);
  };
  const auto left = values(shape.m, shape.k, 1), right = values(shape.k, shape.n, 2),
             out = values(shape.m, shape.n, 3);
  const auto plan = products.matmul(shape);
  const bool adds_bias = shape.epilogue == Epilogue::bias || shape.epilogue == Epilogue::bias_relu;
  const std::vector<float> bias = values(1, shape.n, 4);
  CardMemory of_left(left.size() * 4), of_right(right.size() * 4), of_out(out.size() * 4),
      of_bias(bias.size() * 4), workspace(plan->workspace_bytes());
  of_left.write(
      stored(shape.left_transposed ? transposed(left, shape.m, shape.k) : left, DType::f32));
  of_right.write(
      stored(shape.right_transposed ? transposed(right, shape.k, shape.n) : right, DType::f32));
  of_out.write(stored(out, DType::f32));
  if (!shape.accumulates) of_out.poison();
  of_bias.poison();
  if (adds_bias) of_bias.write(stored(bias, DType::f32));
  workspace.poison();
  CardStream stream;
  stream.run([&](Stream on) {
    plan->run(
        {static_cast<float*>(of_left.data()), static_cast<float*>(of_right.data()),
         static_cast<float*>(of_out.data()), workspace.data(), static_cast<float*>(of_bias.data())},
        on);
  });
  Reference wanted = multiply(shape, left, right, out);
  for (std::size_t i = 0; adds_bias && i < wanted.values.size(); ++i) {
    const double added = static_cast<double>(bias[i % static_cast<std::size_t>(shape.n)]);
    wanted.values[i] += added;
    wanted.magnitudes[i] += std::abs(added);
    if (shape.epilogue == Epilogue::bias_relu) wanted.values[i] = std::max(wanted.values[i], 0.0);
  }
  std::string found = difference(loaded(of_out.read(), DType::f32), wanted, shape.math);
  if (shape.epilogue == Epilogue::bias_gradient) {
    const std::vector<float> ones(static_cast<std::size_t>(shape.k), 1);
    found += difference(loaded(of_bias.read(), DType::f32),
                        multiply({1, shape.k, shape.n}, ones, right, bias), shape.math);
  }
  return found;
}

TEST(MatmulOnCard, IsRight) {
  if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
  const auto products = make_products({});
  for (const Math math : {Math::fp32, Math::tf32}) {
    for (int bits = 0; bits < 8; ++bits) {
      for (const auto& [m, k, n] : {std::array{64, 5408, 64}, {64, 64, 10}, {5, 7, 3}}) {
        const MatmulShape shape{m, k, n, bool(bits & 1), bool(bits & 2), bool(bits & 4), math};
        EXPECT_EQ(matmul_difference(*products, shape), "") << to_text(shape);
      }
    }
  }
}

// As dense layers ask for them. What the library does not offer, kernels of ours do.
TEST(MatmulOnCard, EpiloguesAreRight) {
  if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
  const auto products = make_products({});
  int offered = 0;
  for (const Math math : {Math::fp32, Math::tf32}) {
    for (const auto& [batch, in, out] : {std::array{64, 784, 128}, {64, 128, 10}, {32, 2048, 5}}) {
      for (const MatmulShape& shape :
           {MatmulShape{batch, in, out, false, false, false, math, Epilogue::bias},
            MatmulShape{batch, in, out, false, false, false, math, Epilogue::bias_relu},
            MatmulShape{in, batch, out, true, false, false, math, Epilogue::bias_gradient}}) {
        try {
          EXPECT_EQ(matmul_difference(*products, shape), "") << to_text(shape);
          ++offered;
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::usage) throw;
          std::cout << to_text(shape) << ": " << error.what() << '\n';
        }
      }
    }
  }
  EXPECT_GT(offered, 0);
}

// What these tests measure by, on any machine: a window of two by two over a plane of two by two.
TEST(ConvReference, IsTheDefinition) {
  const ConvShape shape{1, 2, 2, 1, 1, 2, 1, 0};
  const std::vector<float> x{1, 2, 3, 4}, w{5, 6, 7, -8}, y{3};
  const Reference forward = convolve({shape, ConvPass::forward}, x, w, y, y);
  EXPECT_EQ(forward.values, (std::vector<double>{5 + 12 + 21 - 32}));
  EXPECT_EQ(forward.magnitudes, (std::vector<double>{5 + 12 + 21 + 32}));
  EXPECT_EQ(convolve({shape, ConvPass::backward_data, true}, x, w, y, x).values,
            (std::vector<double>{1 + 15, 2 + 18, 3 + 21, 4 - 24}));
  EXPECT_EQ(convolve({shape, ConvPass::backward_weights}, x, w, y, w).values,
            (std::vector<double>{3, 6, 9, 12}));
  const ConvShape padded{1, 1, 1, 1, 1, 3, 2, 1};
  EXPECT_EQ(
      convolve({padded, ConvPass::forward}, {2}, {0, 0, 0, 0, 7, 0, 0, 0, 0}, {0}, {0}).values,
      (std::vector<double>{14}));
}

}  // namespace
}  // namespace paceline::cuda
