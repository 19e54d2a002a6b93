// cuBLASLt's functions on the host, as its documentation says: matrices column by column, of fp32.
// Offers two algorithms; the second one uses tensor cores, unless the preference forbids them. With
// 4096 bytes of workspace it offers as many as there is room for.
#include <cublasLt.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace {

struct Layout {
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct Operation {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;  // of a column's elements; a gradient's, of a row's
  float* before_gelu = nullptr;
  std::int64_t leading = 0;  // of before_gelu
};
struct Preference {
  std::uint64_t workspace = 0, implementations = ~0ULL;
};

constexpr std::uint64_t kPlain = 7, kOnTensorCores = 66, kManyWorkspace = 4096;

float at(const float* matrix, const Layout& layout, cublasOperation_t operation, std::size_t row,
         std::size_t column) {
  if (operation == CUBLAS_OP_T) std::swap(row, column);
  return matrix[row + column * static_cast<std::size_t>(layout.leading)];
}

template <typename Real>
Real* as(void* handle) {
  return static_cast<Real*>(handle);
}

float gelu(float x) {
  return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
}
float gelu_slope(float x) {
  constexpr float kStep = 1e-2F;
  return (gelu(x + kStep) - gelu(x - kStep)) / (2 * kStep);
}

// What an epilogue makes of a sum.
float finish(const Operation& operation, std::size_t row, std::size_t column, float sum) {
  const auto before = [&]() -> float& {
    return operation.before_gelu[row + column * static_cast<std::size_t>(operation.leading)];
  };
  switch (operation.epilogue) {
    case CUBLASLT_EPILOGUE_BIAS:
      return sum + operation.bias[row];
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      before() = sum + operation.bias[row];
      return gelu(before());
    case CUBLASLT_EPILOGUE_DGELU:
      return sum * gelu_slope(before());
    default:
      return sum;
  }
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() {
  return 130100;
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "a status";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t,
                                        cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete as<Operation>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  Operation& set = *as<Operation>(operation);
  const auto take = [&](auto& member) {
    if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(set.a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(set.b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(set.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(set.bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(set.before_gelu);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(set.leading);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete as<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete as<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  Preference& set = *as<Preference>(preference);
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != 8) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&set.workspace, value, bytes);
  } else if (name == CUBLASLT_MATMUL_PREF_IMPL_MASK) {
    if (bytes != 8) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&set.implementations, value, bytes);
  } else if (bytes != 4) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int room,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  const Preference& asked = *as<Preference>(preference);
  *count = 0;
  for (const std::uint64_t id : {kPlain, kOnTensorCores}) {
    const std::uint64_t flags =
        id == kPlain ? CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA : CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
    if (*count == room || (flags & ~asked.implementations)) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    result.algo.data[0] = id;
    result.algo.data[7] = 0x0123456789abcdef;
    result.workspaceSize = asked.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  for (; asked.workspace == kManyWorkspace && *count < room; ++*count) results[*count] = results[0];
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (algorithm->data[7] != 0x0123456789abcdef) return CUBLAS_STATUS_INVALID_VALUE;
  *result = {};
  result->algo = *algorithm;
  result->workspaceSize = 64;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t, void* value,
                                                 size_t bytes, size_t* written) {
  const std::uint64_t flags = algorithm->data[0] == kPlain ? CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA
                                                           : CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
  std::memcpy(value, &flags, *written = bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t,
                                                    void* value, size_t bytes, size_t* written) {
  const auto id = static_cast<std::int32_t>(algorithm->data[0]);
  std::memcpy(value, &id, *written = bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* out, cublasLtMatrixLayout_t out_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  const Operation& operation = *as<Operation>(description);
  const Layout &of_a = *as<Layout>(a_layout), &of_b = *as<Layout>(b_layout),
               &of_out = *as<Layout>(out_layout);
  const std::size_t depth = operation.a == CUBLAS_OP_T ? of_a.rows : of_a.columns;
  if (depth != (operation.b == CUBLAS_OP_T ? of_b.columns : of_b.rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (std::size_t column = 0; column < of_out.columns; ++column) {
    for (std::size_t row = 0; row < of_out.rows; ++row) {
      float sum = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        sum += at(static_cast<const float*>(a), of_a, operation.a, row, k) *
               at(static_cast<const float*>(b), of_b, operation.b, k, column);
      }
      const std::size_t place = row + column * static_cast<std::size_t>(of_out.leading);
      const float before = *static_cast<const float*>(beta);
      sum = *static_cast<const float*>(alpha) * sum +
            (before == 0 ? 0 : before * static_cast<const float*>(c)[place]);
      static_cast<float*>(out)[place] = finish(operation, row, column, sum);
    }
    if (operation.epilogue != CUBLASLT_EPILOGUE_BGRADB) continue;
    operation.bias[column] = 0;
    for (std::size_t k = 0; k < depth; ++k) {
      operation.bias[column] += at(static_cast<const float*>(b), of_b, operation.b, k, column);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
