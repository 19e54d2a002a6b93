#include "engine/device/cuda/dnn/blas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <functional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/log.h"

namespace paceline::cuda {

namespace {

// cuBLAS documentation: what is enough for its fastest kernels on Hopper.
constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;
constexpr int kMostAlgorithms = 32;
constexpr std::uint32_t kAlignment = 16;  // bytes, of all operands

template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, std::function<void(Handle)>>;

cublasLtEpilogue_t choose_epilogue(const MatmulShape& product) {
  switch (product.epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
    case Epilogue::bias_add:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::bias_gradient:
      return CUBLASLT_EPILOGUE_BGRADA;  // its A is our b
    case Epilogue::left_gradient:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::bias_gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  throw internal_error("an epilogue has no name");
}

void set_operands(const CublasLt& library, cublasLtMatmulDesc_t operation, Epilogue epilogue,
                  const void* vector, const void* before_gelu) {
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const void* memory) {
    library.check(library.set_operation(operation, name, &memory, sizeof memory), "epilogue");
  };
  if (has_vector(epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  if (has_gelu(epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before_gelu);
}

Owned<cublasLtMatmulDesc_t> make_operation(const CublasLt& library, const MatmulShape& product) {
  cublasLtMatmulDesc_t raw = nullptr;
  const cublasComputeType_t compute =
      product.math == Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  library.check(library.create_operation(&raw, compute, CUDA_R_32F), "description");
  Owned<cublasLtMatmulDesc_t> made(raw, library.destroy_operation);
  // Read column by column, as cuBLAS does, our matrices are their transposes: out^T = b^T a^T.
  const cublasOperation_t first = product.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = product.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  library.check(library.set_operation(raw, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
                "transposition");
  library.check(library.set_operation(raw, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
                "transposition");
  if (product.epilogue == Epilogue::none) return made;
  const cublasLtEpilogue_t epilogue = choose_epilogue(product);
  library.check(
      library.set_operation(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
      "epilogue");
  if (has_gelu(product.epilogue)) {
    const std::int64_t row = product.n;
    library.check(
        library.set_operation(raw, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &row, sizeof row),
        "epilogue");
  }
  // The heuristic takes the alignment of this address for that of the epilogue's operands, and does
  // not look at what lies there.
  alignas(kAlignment) static constexpr std::array<float, 4> kAligned{};
  set_operands(library, raw, product.epilogue, kAligned.data(), kAligned.data());
  return made;
}

// A matrix of so many rows and columns, row by row.
Owned<cublasLtMatrixLayout_t> make_layout(const CublasLt& library, Math math, std::int64_t rows,
                                          std::int64_t columns) {
  const DType stored = stored_as(math);
  const cudaDataType_t type = stored == DType::bf16  ? CUDA_R_16BF
                              : stored == DType::f16 ? CUDA_R_16F
                                                     : CUDA_R_32F;
  cublasLtMatrixLayout_t raw = nullptr;
  library.check(library.create_layout(&raw, type, static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), columns),
                "layout");
  return {raw, library.destroy_layout};
}

// A product in cuBLASLt's terms; made once, used for the heuristic and by what it offers. Whoever
// queues it sets the epilogue's operands of its operation before.
struct Problem {
  Problem(std::shared_ptr<CublasLt> of, const MatmulShape& asked)
      : library(std::move(of)),
        product(asked),
        operation(make_operation(*library, asked)),
        a(asked.left_transposed ? make_layout(*library, asked.math, asked.k, asked.m)
                                : make_layout(*library, asked.math, asked.m, asked.k)),
        b(asked.right_transposed ? make_layout(*library, asked.math, asked.n, asked.k)
                                 : make_layout(*library, asked.math, asked.k, asked.n)),
        out(make_layout(*library, asked.math, asked.m, asked.n)) {}

  std::shared_ptr<CublasLt> library;
  MatmulShape product;
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> a, b, out;
};

class BlasImplementation : public Implementation {
 public:
  BlasImplementation(std::shared_ptr<const Problem> problem, const cublasLtMatmulAlgo_t& algorithm,
                     std::size_t workspace)
      : problem_(std::move(problem)), algorithm_(algorithm), workspace_(workspace) {}

  std::size_t workspace_bytes() const override { return workspace_; }

  void run(const Operands& operands, Stream stream) override {
    const Epilogue epilogue = problem_->product.epilogue;
    const bool adds_plane = epilogue == Epilogue::bias_add;
    const float one = 1, rest = problem_->product.accumulates || adds_plane ? 1.0F : 0.0F;
    void* const added = operands.tensors[adds_plane ? 4 : 2];
    CublasLt& library = *problem_->library;
    set_operands(library, problem_->operation.get(), epilogue, operands.tensors[3],
                 operands.tensors[has_vector(epilogue) ? 4 : 3]);
    library.check(
        library.multiply(library.handle(), problem_->operation.get(), &one, operands.tensors[1],
                         problem_->b.get(), operands.tensors[0], problem_->a.get(), &rest, added,
                         problem_->out.get(), operands.tensors[2], problem_->out.get(), &algorithm_,
                         operands.workspace, workspace_, static_cast<cudaStream_t>(stream)),
        "product");
  }

 private:
  std::shared_ptr<const Problem> problem_;
  cublasLtMatmulAlgo_t algorithm_;
  std::size_t workspace_;
};

Owned<cublasLtMatmulPreference_t> make_preference(const CublasLt& library,
                                                  const MatmulShape& product,
                                                  std::uint64_t workspace) {
  cublasLtMatmulPreference_t raw = nullptr;
  library.check(library.create_preference(&raw), "preference");
  Owned<cublasLtMatmulPreference_t> made(raw, library.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    library.check(library.set_preference(raw, name, &value, sizeof value), "preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(name, kAlignment);
  }
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  if (product.math == Math::fp32) {
    const std::uint64_t no_tensor_cores =
        ~static_cast<std::uint64_t>(CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK);
    set(CUBLASLT_MATMUL_PREF_IMPL_MASK, no_tensor_cores);
  }
  return made;
}

bool uses_tensor_cores(const CublasLt& library, const cublasLtMatmulAlgo_t& algorithm) {
  std::uint64_t flags = 0;
  std::size_t written = 0;
  library.check(library.capability(&algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags,
                                   sizeof flags, &written),
                "capability of an algorithm");
  return (flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
}

void refuse_tensor_cores(const CublasLt& library, const MatmulShape& product,
                         const cublasLtMatmulAlgo_t& algorithm) {
  if (product.math == Math::fp32 && uses_tensor_cores(library, algorithm)) {
    throw usage_error("multiplies on tensor cores, in less than fp32", "cuBLASLt",
                      "use another algorithm");
  }
}

Recipe make_recipe(const CublasLt& library, const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t id = 0;
  std::size_t written = 0;
  library.check(
      library.configuration(&algorithm, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written),
      "number of an algorithm");
  Recipe recipe;
  recipe.library = Recipe::Library::cublas_lt;
  recipe.engine = id;
  for (const std::uint64_t word : algorithm.data) recipe.algorithm += fmt::format("{:016x}", word);
  return recipe;
}

cublasLtMatmulAlgo_t make_algorithm(const Recipe& recipe) {
  cublasLtMatmulAlgo_t algorithm{};
  if (recipe.library != Recipe::Library::cublas_lt || recipe.algorithm.size() != 128) {
    throw input_error("not an algorithm of cuBLASLt", recipe.text(),
                      "remove it from the file of choices");
  }
  std::size_t at = 0;
  for (std::uint64_t& word : algorithm.data) {
    word = std::stoull(recipe.algorithm.substr(at, 16), nullptr, 16);
    at += 16;
  }
  return algorithm;
}

}  // namespace

std::optional<MatmulShape> find_product(const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  if (!is_plain_product(shape)) return std::nullopt;
  if (std::int64_t{1} * shape.batch * shape.height * shape.width > INT_MAX) return std::nullopt;
  const int pixels = shape.batch * shape.height * shape.width;
  switch (request.pass) {
    case ConvPass::forward:
      return MatmulShape{pixels, shape.in, shape.out,  false,
                         true,   false,    shape.math, request.epilogue};
    case ConvPass::backward_data:
      return MatmulShape{pixels, shape.out,           shape.in,   false,
                         false,  request.accumulates, shape.math, request.epilogue};
    case ConvPass::backward_weights:
      return MatmulShape{shape.out, pixels, shape.in,   true,
                         false,     false,  shape.math, request.epilogue};
  }
  return std::nullopt;
}

CublasLt::~CublasLt() {
  if (handle_) destroy_(handle_);
}

std::string CublasLt::version() const {
  const std::size_t number = version_();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

cublasLtHandle_t CublasLt::handle() {
  if (handle_) return handle_;
  if (const cublasStatus_t status = create_(&handle_); status != CUBLAS_STATUS_SUCCESS) {
    handle_ = nullptr;
    throw usage_error("cuBLASLt finds no GPU that it can use", status_string_(status),
                      "check the driver with nvidia-smi, or use --device cpu");
  }
  return handle_;
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool unsupported =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
  throw Error(unsupported ? ErrorKind::usage : ErrorKind::internal,
              std::string("cuBLASLt, ") + what + ": " + status_string_(status), "",
              unsupported ? "another precision may be served"
                          : "run again with CUBLASLT_LOG_LEVEL=2 for the reasons");
}

Offered cublas_offer(const std::shared_ptr<CublasLt>& library, const MatmulShape& product,
                     std::size_t workspace_limit) {
  const auto problem = std::make_shared<const Problem>(library, product);
  const auto preference =
      make_preference(*library, product, std::min(workspace_limit, kMostWorkspace));
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> results{};
  int count = 0;
  const cublasStatus_t status =
      library->heuristic(library->handle(), problem->operation.get(), problem->b.get(),
                         problem->a.get(), problem->out.get(), problem->out.get(), preference.get(),
                         kMostAlgorithms, results.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  // Some epilogues that it does not have are invalid values to it; the caller has a way without.
  if (status != CUBLAS_STATUS_SUCCESS && product.epilogue != Epilogue::none) {
    log::debug("cuBLASLt has no epilogue for a product of {} x {} x {}: {}", product.m, product.k,
               product.n, library->status_text(status));
    return {};
  }
  library->check(status, "heuristic");
  Offered found;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    ++found.count;
    found.candidates.push_back(
        {make_recipe(*library, result.algo), product.math != Math::fp32, false, [problem, result] {
           refuse_tensor_cores(*problem->library, problem->product, result.algo);
           return std::make_shared<BlasImplementation>(problem, result.algo, result.workspaceSize);
         }});
  }
  return found;
}

std::shared_ptr<Implementation> build_product(const std::shared_ptr<CublasLt>& library,
                                              const MatmulShape& product, const Recipe& recipe) {
  const auto problem = std::make_shared<const Problem>(library, product);
  const cublasLtMatmulAlgo_t algorithm = make_algorithm(recipe);
  cublasLtMatmulHeuristicResult_t result{};
  library->check(library->check_algorithm(library->handle(), problem->operation.get(),
                                          problem->b.get(), problem->a.get(), problem->out.get(),
                                          problem->out.get(), &algorithm, &result),
                 "algorithm of an earlier run");
  refuse_tensor_cores(*library, product, algorithm);
  return std::make_shared<BlasImplementation>(problem, algorithm, result.workspaceSize);
}

}  // namespace paceline::cuda
