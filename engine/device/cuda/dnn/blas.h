// Matrix products by cuBLASLt, row-major, for all types.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <optional>
#include <string>

#include "engine/core/shared_library.h"
#include "engine/device/cuda/dnn/choice.h"

namespace paceline::cuda {

// Products of any math here: operands are in the order left, right, out, and the epilogue's vector
// and `before`, of type stored_as(math), with sums in fp32.

// A 1x1 convolution of all pixels as a matrix product with one row per pixel. Its operands are
// those of make_operands (graph.h).
std::optional<MatmulShape> find_product(const ConvRequest& request);

// The library and its handle. The handle needs a GPU, so it is created for the first product. Not
// thread-safe.
class CublasLt {
 public:
  explicit CublasLt(const SharedLibrary& library);  // throws usage if a function is missing
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "13.1.0"
  cublasLtHandle_t handle();    // throws usage without a GPU
  // Throws `what` with the library's message: usage for "not supported", else internal.
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

// The heuristic's algorithms, best first, with at most `workspace_limit` bytes of workspace, and
// without tensor cores in fp32. Split products are summed in fp32, never in a narrower type.
Offered cublas_offer(const std::shared_ptr<CublasLt>& library, const MatmulShape& product,
                     std::size_t workspace_limit);

// The algorithm of an earlier choice. Throws if it cannot run this product here.
std::shared_ptr<Implementation> build_product(const std::shared_ptr<CublasLt>& library,
                                              const MatmulShape& product, const Recipe& recipe);

}  // namespace paceline::cuda
