// Against a cuBLASLt of our own that multiplies on the host: what is asked of it gives the products
// that blas.h promises.
#include "engine/device/cuda/dnn/blas.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/device/cuda/dnn/graph.h"
#include "tests/support/expect_error.h"

namespace paceline::cuda {
namespace {

using Matrix = std::vector<float>;

Matrix numbers(std::size_t count, float start) {
  Matrix values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::sin(start + 0.7F * static_cast<float>(i));
  }
  return values;
}

void expect_near(const Matrix& found, const Matrix& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
}

class Blas : public testing::Test {
 protected:
  void multiply(const MatmulShape& product, Matrix& a, Matrix& b, Matrix& out) {
    const Offered offered = cublas_offer(library_, product, 1000);
    ASSERT_FALSE(offered.candidates.empty());
    for (const Candidate& candidate : offered.candidates) {
      Matrix result = out;
      candidate.build()->run({{a.data(), b.data(), result.data()}, nullptr}, nullptr);
      if (&candidate == &offered.candidates.back()) out = result;
    }
  }

  std::shared_ptr<CublasLt> library_ =
      std::make_shared<CublasLt>(SharedLibrary({FAKE_CUBLAS_LT}, {}));
};

TEST_F(Blas, MultipliesRowByRow) {
  constexpr std::size_t m = 5, k = 7, n = 3;
  for (int bits = 0; bits < 8; ++bits) {
    const bool a_transposed = bits & 1, b_transposed = bits & 2, adds = bits & 4;
    Matrix a = numbers(m * k, 1), b = numbers(k * n, 2), out = numbers(m * n, 3);
    Matrix wanted = adds ? out : Matrix(m * n, 0);
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = 0; column < n; ++column) {
        for (std::size_t i = 0; i < k; ++i) {
          wanted[row * n + column] += (a_transposed ? a[i * m + row] : a[row * k + i]) *
                                      (b_transposed ? b[column * k + i] : b[i * n + column]);
        }
      }
    }
    multiply({m, k, n, a_transposed, b_transposed, adds, Math::tf32}, a, b, out);
    SCOPED_TRACE(bits);
    expect_near(out, wanted);
  }
}

// Pixel by pixel, from the definition: y[p][o] = sum over i of x[p][i] w[o][i], and its gradients.
TEST_F(Blas, ComputesConvolutionsOfOnePixel) {
  constexpr std::size_t kPixels = 2 * 3 * 4, kIn = 5, kOut = 6;
  const ConvShape shape{2, 3, 4, kIn, kOut, 1, 1, 0, Math::tf32};
  const Matrix x = numbers(kPixels * kIn, 1), w = numbers(kOut * kIn, 2),
               y = numbers(kPixels * kOut, 3);
  for (const auto& [pass, adds] : {std::pair{ConvPass::forward, false},
                                   {ConvPass::backward_data, false},
                                   {ConvPass::backward_data, true},
                                   {ConvPass::backward_weights, false}}) {
    Matrix wanted = pass == ConvPass::forward         ? Matrix(y.size(), 0)
                    : pass == ConvPass::backward_data ? (adds ? x : Matrix(x.size(), 0))
                                                      : Matrix(w.size(), 0);
    for (std::size_t p = 0; p < kPixels; ++p) {
      for (std::size_t o = 0; o < kOut; ++o) {
        for (std::size_t i = 0; i < kIn; ++i) {
          if (pass == ConvPass::forward) wanted[p * kOut + o] += x[p * kIn + i] * w[o * kIn + i];
          if (pass == ConvPass::backward_data) {
            wanted[p * kIn + i] += y[p * kOut + o] * w[o * kIn + i];
          }
          if (pass == ConvPass::backward_weights) {
            wanted[o * kIn + i] += y[p * kOut + o] * x[p * kIn + i];
          }
        }
      }
    }
    Matrix my_x = x, my_w = w, my_y = y;
    const Operands operands =
        make_operands({shape, pass}, {my_x.data(), my_w.data(), my_y.data(), nullptr});
    const auto product = find_product({shape, pass, adds});
    ASSERT_TRUE(product);
    const Offered offered = cublas_offer(library_, *product, 0);
    offered.candidates.at(0).build()->run(operands, nullptr);
    SCOPED_TRACE(static_cast<int>(pass));
    expect_near(pass == ConvPass::forward         ? my_y
                : pass == ConvPass::backward_data ? my_x
                                                  : my_w,
                wanted);
  }
}

// y[p][o] of the definition + b[o], then what the epilogue adds to it.
TEST_F(Blas, ComputesEpiloguesOfConvolutionsOfOnePixel) {
  constexpr std::size_t kPixels = 6, kIn = 5, kOut = 7;
  const ConvShape shape{2, 3, 1, kIn, kOut, 1, 1, 0, Math::tf32};
  Matrix x = numbers(kPixels * kIn, 1), w = numbers(kOut * kIn, 2), bias = numbers(kOut, 4);
  const auto gelu = [](float v) {
    return 0.5F * v * (1 + std::tanh(0.7978845608F * (v + 0.044715F * v * v * v)));
  };
  Matrix sums(kPixels * kOut);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = bias[i % kOut];
    for (std::size_t c = 0; c < kIn; ++c) sums[i] += x[i / kOut * kIn + c] * w[i % kOut * kIn + c];
  }
  const auto run = [&](const ConvRequest& request, const ConvOperands& operands) {
    const Offered offered = cublas_offer(library_, find_product(request).value(), 0);
    offered.candidates.at(0).build()->run(make_operands(request, operands), nullptr);
  };
  Matrix y(sums.size()), before = numbers(sums.size(), 5), wanted = sums;
  ConvOperands operands{x.data(), w.data(), y.data(), nullptr, bias.data(), before.data()};
  run({shape, ConvPass::forward, false, Epilogue::bias}, operands);
  expect_near(y, sums);
  run({shape, ConvPass::forward, false, Epilogue::bias_add}, operands);
  for (std::size_t i = 0; i < sums.size(); ++i) wanted[i] = sums[i] + before[i];
  expect_near(y, wanted);
  run({shape, ConvPass::forward, false, Epilogue::bias_gelu}, operands);
  for (std::size_t i = 0; i < sums.size(); ++i) wanted[i] = gelu(sums[i]);
  expect_near(y, wanted);
  expect_near(before, sums);

  before = numbers(kPixels * kIn, 6);
  operands.before = before.data();
  run({shape, ConvPass::backward_data, false, Epilogue::gelu_gradient}, operands);
  wanted.assign(x.size(), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t o = 0; o < kOut; ++o)
      wanted[i] += y[i / kIn * kOut + o] * w[o * kIn + i % kIn];
    wanted[i] *= (gelu(before[i] + 1e-2F) - gelu(before[i] - 1e-2F)) / 2e-2F;
  }
  expect_near(x, wanted);

  run({shape, ConvPass::backward_weights, false, Epilogue::left_gradient}, operands);
  wanted.assign(kOut, 0);
  for (std::size_t i = 0; i < y.size(); ++i) wanted[i % kOut] += y[i];
  expect_near(bias, wanted);
}

TEST_F(Blas, ComputesNoOtherConvolution) {
  EXPECT_FALSE(find_product({{2, 3, 4, 8, 8, 3, 1, 1}, ConvPass::forward}));
  EXPECT_FALSE(find_product({{2, 3, 4, 8, 8, 1, 2, 0}, ConvPass::forward}));
  EXPECT_FALSE(find_product({{2, 3, 4, 8, 8, 1, 1, 1}, ConvPass::forward}));
}

TEST_F(Blas, StrictFp32TakesNoTensorCores) {
  const MatmulShape strict{4, 4, 4, false, false, false, Math::fp32};
  MatmulShape loose = strict;
  loose.math = Math::tf32;
  EXPECT_EQ(cublas_offer(library_, strict, 0).candidates.size(), 1U);
  const Offered offered = cublas_offer(library_, loose, 0);
  ASSERT_EQ(offered.candidates.size(), 2U);
  const Recipe on_tensor_cores = offered.candidates[1].recipe;
  EXPECT_EQ(on_tensor_cores.text(), "cuBLASLt algorithm 66");
  EXPECT_TRUE(build_product(library_, loose, on_tensor_cores));
  expect_error(ErrorKind::usage, {"tensor cores"},
               [&] { build_product(library_, strict, on_tensor_cores); });
}

TEST_F(Blas, WorkspaceIsWithinTheLimitAnd32MiB) {
  const MatmulShape product{4, 4, 4, false, false, false, Math::tf32};
  EXPECT_EQ(cublas_offer(library_, product, 1000).candidates[0].build()->workspace_bytes(), 1000U);
  EXPECT_EQ(cublas_offer(library_, product, std::size_t{1} << 30)
                .candidates[0]
                .build()
                ->workspace_bytes(),
            std::size_t{32} << 20);
}

TEST_F(Blas, OffersWhatTheLibraryHasUpToThirtyTwo) {
  const MatmulShape product{4, 4, 4, false, false, false, Math::tf32};
  EXPECT_EQ(cublas_offer(library_, product, 4096).candidates.size(), 32U);
}

TEST_F(Blas, AlgorithmsAreRebuiltFromTheirRecipe) {
  const MatmulShape product{4, 4, 4, false, false, false, Math::fp32};
  Recipe recipe = cublas_offer(library_, product, 1000).candidates[0].recipe;
  EXPECT_EQ(recipe.algorithm.size(), 128U);
  EXPECT_EQ(build_product(library_, product, recipe)->workspace_bytes(), 64U);
  const Recipe of_cudnn;
  expect_error(ErrorKind::input, {"not an algorithm of cuBLASLt"},
               [&] { build_product(library_, product, of_cudnn); });
  recipe.algorithm.back() = '0';
  expect_error(ErrorKind::internal, {"algorithm of an earlier run"},
               [&] { build_product(library_, product, recipe); });
}

}  // namespace
}  // namespace paceline::cuda
