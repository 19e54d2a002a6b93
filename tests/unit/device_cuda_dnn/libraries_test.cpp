#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/session.h"
#include "tests/support/expect_error.h"

namespace paceline::cuda {
namespace {

TEST(ProductLibraries, ThatAreMissingAreNamedWithTheCure) {
  LibraryNames names;
  names.cublas_lt = {"libabsent-blas.so.13"};
  expect_error(ErrorKind::usage,
               {"cuBLASLt cannot be opened", "libabsent-blas.so.13", "looked in", "/lib",
                "install the libraries of CUDA", "PACELINE_CUDA_LIBS"},
               [&] { Libraries{names}; });
}

TEST(ProductLibraries, WithoutCudnnAreMarked) {
  LibraryNames names;
  // Something that opens in place of cuBLASLt, where that is missing too.
  names.cublas_lt = {"libc.so.6"};
  names.cudnn = {"libabsent-dnn.so.9", "libabsent-dnn.so"};
  expect_error(ErrorKind::usage,
               {"cuDNN cannot be opened", "libabsent-dnn.so.9", "install cuDNN 9"},
               [&] { Libraries{names}; });
}

TEST(ProductLibraries, AreNotNeededForCompilationAtRunTime) {
  LibraryNames names;
  names.nvrtc_builtins = names.nvrtc = {"libabsent.so"};
  names.cublas_lt = names.cudnn = {"libc.so.6"};
  const Libraries opened(names);
  EXPECT_FALSE(opened.nvrtc);
  EXPECT_TRUE(opened.cudnn);
}

TEST(ProductLibraries, CudnnForAnotherCudaIsNamed) {
  constexpr std::size_t kOurs = CUDART_VERSION / 1000 * 1000, kOlder = kOurs - 1000;
  EXPECT_EQ(cudnn_version_text(91900, kOurs + 90), "9.19.0");
  EXPECT_EQ(cudnn_version_text(90100, kOlder + 40),
            "9.1.0 for CUDA " + std::to_string(kOlder / 1000) +
                ", where this program needs one for CUDA " + std::to_string(kOurs / 1000));
}

TEST(ProductLibraries, OfAnotherKindAreRefused) {
  ProductsOptions options;
  options.libraries.cublas_lt = options.libraries.cudnn = {"libc.so.6"};
  expect_error(ErrorKind::usage, {"cudnnGetVersion", "libc.so.6"}, [&] { make_products(options); });
}

}  // namespace
}  // namespace paceline::cuda
