// oneDNN's products, of which some pack their right operand first.
#include "engine/device/cpu/library.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/memory.h"
#include "engine/core/random.h"
#include "engine/device/cpu/parallel.h"
#include "tests/support/expect_error.h"

namespace paceline::cpu {
namespace {

std::vector<float> random_values(std::size_t count, std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// oneAPI's modules have one for TBB and one for SYCL; here it is Debian's, of OpenMP.
TEST(Library, ComputesByOpenMpOnly) {
  check_library_threads();
  constexpr unsigned kSequential = 1, kTbb = 4;  // dnnl_cpu_runtime
  expect_error(ErrorKind::usage, {"computes by TBB", "DNNL_CPU_RUNTIME=OMP"},
               [] { check_library_threads(kTbb); });
  expect_error(ErrorKind::usage, {"computes by one thread"},
               [] { check_library_threads(kSequential); });
}

// Rows of 1,024 floats are whole pages; the others have one more or fewer rows of the left operand.
TEST(LibraryProduct, IsTheSumOverSteps) {
  const Parallel parallel(2, {});
  constexpr int kSteps = 24;
  for (const auto& [m, n] :
       {std::pair{256, 1024}, std::pair{255, 1024}, std::pair{256, 1040}, std::pair{300, 2048}}) {
    for (const bool transposed : {false, true}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + (transposed ? ", left" : "") +
                     (adds ? ", adds" : ""));
        const auto rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n);
        const std::vector<float> left = random_values(rows * kSteps, 1);
        const std::vector<float> right = random_values(columns * kSteps, 2);
        std::vector<float> out(rows * columns, 3);
        LibraryKernel product =
            LibraryKernel::matmul(m, kSteps, n, transposed, false, DType::f32, DType::f32, adds);
        const Memory scratch = host_memory(product.scratch_bytes());
        product.run({.left = left.data(), .right = right.data(), .out = out.data()},
                    scratch.data());
        double worst = 0;
        for (std::size_t i = 0; i < rows; ++i) {
          for (std::size_t j = 0; j < columns; ++j) {
            double sum = adds ? 3 : 0;
            for (std::size_t k = 0; k < kSteps; ++k) {
              const float factor = transposed ? left[k * rows + i] : left[i * kSteps + k];
              sum += static_cast<double>(factor) * static_cast<double>(right[k * columns + j]);
            }
            worst = std::max(worst, std::abs(static_cast<double>(out[i * columns + j]) - sum));
          }
        }
        EXPECT_LT(worst, 1e-4);
      }
    }
  }
}

TEST(LibraryProduct, PacksRowsOfWholePagesWhereManyRowsUseThem) {
  const Parallel parallel(1, {});
  const auto scratch_bytes = [](int m, int n) {
    return LibraryKernel::matmul(m, 768, n, false, false).scratch_bytes();
  };
  if (!library_has_avx512()) GTEST_SKIP() << "oneDNN blocks right operands with AVX-512";
  constexpr std::size_t kPacked = std::size_t{768} * 3072 * sizeof(float);
  EXPECT_GE(scratch_bytes(1024, 3072), kPacked);
  EXPECT_LT(scratch_bytes(16, 3072), kPacked) << "few rows";
  EXPECT_LT(scratch_bytes(1024, 3088), kPacked) << "other rows";
}

}  // namespace
}  // namespace paceline::cpu
