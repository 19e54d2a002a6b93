// Matrix products by cuBLASLt, row by row, of every type.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/shared_library.h"
#include "engine/device/cuda/dnn/candidate.h"

namespace paceline::cuda {

// out (m x n) = a (m x k) b (k x n), in this order among its operands: a, b, out. All of type
// stored_as(math), summed in fp32. A transposed factor lies in memory as k x m or n x k.
struct BlasProduct {
  std::int64_t m = 0, k = 0, n = 0;
  bool a_transposed = false, b_transposed = false, accumulates = false;
  Math math = Math::fp32;
  Epilogue epilogue = Epilogue::none;  // its vector is the fourth operand
};

// A convolution whose window is one pixel, at every pixel, is a product of matrices with a row a
// pixel; its operands are those of operands_of (convolution.h).
std::optional<BlasProduct> product_of(const ConvRequest& request);

// The library and its handle, which needs a GPU: it is made when a product is first asked for. For
// one thread at a time.
class CublasLt {
 public:
  explicit CublasLt(const SharedLibrary& library);  // throws usage where a function is missing
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "13.1.0"
  cublasLtHandle_t handle();    // throws usage where there is no GPU
  // Throws `what` with the library's words: usage where it says "not supported", else internal.
  void check(cublasStatus_t status, const char* what) const;
  const char* status_text(cublasStatus_t status) const { return status_string_(status); }

  decltype(&::cublasLtMatmulDescCreate) create_operation;
  decltype(&::cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&::cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&::cublasLtMatrixLayoutCreate) create_layout;
  decltype(&::cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&::cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&::cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&::cublasLtMatmulAlgoCheck) check_algorithm;
  decltype(&::cublasLtMatmulAlgoCapGetAttribute) capability;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) configuration;
  decltype(&::cublasLtMatmul) multiply;

 private:
  decltype(&::cublasLtGetVersion) version_;
  decltype(&::cublasLtGetStatusString) status_string_;
  decltype(&::cublasLtCreate) create_;
  decltype(&::cublasLtDestroy) destroy_;
  cublasLtHandle_t handle_ = nullptr;
};

// What its heuristic offers, best first; with no more workspace than `workspace_limit` bytes and,
// in fp32, without tensor cores. Sums of split products are made in fp32, never in a narrower type.
Offered cublas_offer(const std::shared_ptr<CublasLt>& library, const BlasProduct& product,
                     std::size_t workspace_limit);

// The algorithm of an earlier choice. Throws where it does not serve this product here.
std::shared_ptr<Implementation> build_product(const std::shared_ptr<CublasLt>& library,
                                              const BlasProduct& product, const Recipe& recipe);

}  // namespace paceline::cuda
