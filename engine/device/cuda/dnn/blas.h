// Matrix products by cuBLASLt, row-major, for all types.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  SharedLibrary library_;

 public:
  // Throws usage if a function is missing.
  explicit CublasLt(SharedLibrary library) : library_(std::move(library)) {}
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "13.1.0"
  cublasLtHandle_t handle();    // throws usage without a GPU
  // Throws `what` with the library's message: usage for "not supported", else internal.
  void check(cublasStatus_t status, const char* what) const;
  const char* status_text(cublasStatus_t status) const { return status_string_(status); }

  PACELINE_FUNCTION(library_, create_operation, cublasLtMatmulDescCreate);
  PACELINE_FUNCTION(library_, destroy_operation, cublasLtMatmulDescDestroy);
  PACELINE_FUNCTION(library_, set_operation, cublasLtMatmulDescSetAttribute);
  PACELINE_FUNCTION(library_, create_layout, cublasLtMatrixLayoutCreate);
  PACELINE_FUNCTION(library_, destroy_layout, cublasLtMatrixLayoutDestroy);
  PACELINE_FUNCTION(library_, create_preference, cublasLtMatmulPreferenceCreate);
  PACELINE_FUNCTION(library_, destroy_preference, cublasLtMatmulPreferenceDestroy);
  PACELINE_FUNCTION(library_, set_preference, cublasLtMatmulPreferenceSetAttribute);
  PACELINE_FUNCTION(library_, heuristic, cublasLtMatmulAlgoGetHeuristic);
  PACELINE_FUNCTION(library_, check_algorithm, cublasLtMatmulAlgoCheck);
  PACELINE_FUNCTION(library_, capability, cublasLtMatmulAlgoCapGetAttribute);
  PACELINE_FUNCTION(library_, configuration, cublasLtMatmulAlgoConfigGetAttribute);
  PACELINE_FUNCTION(library_, multiply, cublasLtMatmul);

 private:
  PACELINE_FUNCTION(library_, version_, cublasLtGetVersion);
  PACELINE_FUNCTION(library_, status_string_, cublasLtGetStatusString);
  PACELINE_FUNCTION(library_, create_, cublasLtCreate);
  PACELINE_FUNCTION(library_, destroy_, cublasLtDestroy);
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
