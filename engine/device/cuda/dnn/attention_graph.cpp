// The operations of attention as cuDNN knows them: it serves such a graph by one kernel that keeps
// no matrix of places by places, and that it compiles at run time. NVIDIA's developer guide of
// cuDNN, "Fused Flash Attention", shows both graphs.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

namespace {

using Tensor = GraphBuilder::Tensor;
using Size = GraphBuilder::Size;

constexpr std::size_t kNumbers = 3;  // the scale, what scores of later places become, and one

std::size_t count_rows(const AttentionRequest& request) {
  return std::size_t{1} * request.samples * request.places * request.heads;
}

// How the gradient of the queries is summed over the keys. `in_fp32` adds to memory of fp32, in no
// fixed order. `by_product` keeps the gradients of all scores, places by places.
enum class QuerySums { in_fp32, by_product };

QuerySums query_sums(const EngineRules& rules) {
  return rules.deterministic ? QuerySums::by_product : QuerySums::in_fp32;
}

std::size_t query_sums_bytes(const AttentionRequest& request, QuerySums sums) {
  if (!request.backward || sums == QuerySums::by_product) return 0;
  return count_rows(request) * request.width * sizeof(float);
}

class AttentionGraph {
 public:
  AttentionGraph(std::shared_ptr<Session> session, const AttentionRequest& request, QuerySums sums)
      : request_(request),
        query_sums_(sums),
        stored_(cudnn_type(stored_as(request.math))),
        rows_{request.samples, request.heads, request.places, 1},
        vectors_{request.samples, request.heads, request.places, request.width},
        matrices_{request.samples, request.heads, request.places, request.places},
        builder_(std::move(session)) {}

  std::shared_ptr<const OperationGraph> build() {
    request_.backward ? backward() : forward();
    return builder_.finish();
  }

 private:
  // Queries, keys or values, or their gradients.
  Tensor part() {
    const std::int64_t row = 3 * request_.heads * request_.width;
    return builder_.tensor(stored_, vectors_, {row * request_.places, request_.width, row, 1});
  }
  Tensor transposed_part() {
    const std::int64_t row = 3 * request_.heads * request_.width;
    return builder_.tensor(stored_,
                           {request_.samples, request_.heads, request_.width, request_.places},
                           {row * request_.places, request_.width, 1, row});
  }
  Tensor output() {
    const std::int64_t row = std::int64_t{request_.heads} * request_.width;
    return builder_.tensor(stored_, vectors_, {row * request_.places, request_.width, row, 1});
  }
  static Size packed(const Size& size) {
    return {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1};
  }
  Tensor of_rows() { return builder_.tensor(CUDNN_DATA_FLOAT, rows_, packed(rows_)); }
  Tensor between_rows() { return builder_.between(CUDNN_DATA_FLOAT, rows_, packed(rows_)); }
  Tensor matrix(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return builder_.between(type, matrices_, packed(matrices_));
  }
  Tensor transposed(Tensor x) {
    Size strides = packed(matrices_);
    std::swap(strides[2], strides[3]);
    const Tensor y = builder_.between(stored_, matrices_, strides);
    builder_.reshape(x, y);
    return y;
  }
  Tensor combined(cudnnPointwiseMode_t mode, Tensor x, Tensor b) {
    const Tensor y = matrix();
    builder_.pointwise(mode, x, b, y);
    return y;
  }

  Tensor scores(Tensor queries, Tensor transposed_keys, Tensor scale) {
    const Tensor all = matrix();
    builder_.matmul(queries, transposed_keys, all);
    return combined(CUDNN_POINTWISE_MUL, all, scale);
  }
  // Of queries and the keys up to them.
  Tensor masked(Tensor scores, Tensor least) {
    const Tensor row = matrix(CUDNN_DATA_INT32), column = matrix(CUDNN_DATA_INT32);
    builder_.indices(scores, 2, row);
    builder_.indices(scores, 3, column);
    const Tensor mask = matrix(CUDNN_DATA_BOOLEAN), result = matrix();
    builder_.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, mask);
    builder_.select(mask, scores, least, result);
    return result;
  }

  void forward() {
    const Tensor queries = part(), keys = transposed_part(), values = part(), out = output();
    const Tensor sums = of_rows(), scale = builder_.number(), least = builder_.number();
    const Tensor kept = masked(scores(queries, keys, scale), least);
    const Tensor largest = between_rows(), total = between_rows(), logarithm = between_rows();
    builder_.reduce(CUDNN_REDUCE_TENSOR_MAX, kept, largest);
    const Tensor exponentials = matrix(), weights = matrix(stored_);
    builder_.pointwise(CUDNN_POINTWISE_EXP, combined(CUDNN_POINTWISE_SUB, kept, largest),
                       exponentials);
    builder_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, total);
    builder_.pointwise(CUDNN_POINTWISE_LOG, total, logarithm);
    builder_.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, sums);
    builder_.pointwise(CUDNN_POINTWISE_DIV, exponentials, total, weights);
    builder_.matmul(weights, values, out);
  }

  // cuDNN's engines expect just these operations: the product with one, too, where dropout would
  // scale, and keys that are transposed back.
  void backward() {
    const Tensor queries = part(), transposed_keys = transposed_part();
    const Tensor transposed_values = transposed_part(), out = output(), out_gradient = output();
    const Tensor sums = of_rows(), products = of_rows();
    const Tensor of_queries = part(), of_keys = part(), of_values = part();
    const Tensor scale = builder_.number(), least = builder_.number(), one = builder_.number();
    const Tensor product = builder_.between(CUDNN_DATA_FLOAT, vectors_, packed(vectors_));
    const Tensor unscaled = between_rows();
    builder_.pointwise(CUDNN_POINTWISE_MUL, out_gradient, out, product);
    builder_.reduce(CUDNN_REDUCE_TENSOR_ADD, product, unscaled);
    builder_.pointwise(CUDNN_POINTWISE_MUL, unscaled, one, products);
    const Tensor shifted =
        combined(CUDNN_POINTWISE_SUB, scores(queries, transposed_keys, scale), sums);
    const Tensor weights = matrix(), of_weights = matrix(), of_scores = matrix(stored_);
    builder_.pointwise(CUDNN_POINTWISE_EXP, masked(shifted, least), weights);
    builder_.matmul(transposed(weights), out_gradient, of_values);
    builder_.matmul(out_gradient, transposed_values, of_weights);
    const Tensor centred = combined(CUDNN_POINTWISE_SUB, of_weights, products);
    builder_.pointwise(CUDNN_POINTWISE_MUL, combined(CUDNN_POINTWISE_MUL, centred, weights), scale,
                       of_scores);
    builder_.matmul(transposed(of_scores), queries, of_keys);
    const std::int64_t row = 3 * request_.heads * request_.width;
    const Tensor keys =
        builder_.between(stored_, vectors_, {row * request_.places, request_.width, row, 1});
    builder_.reshape(transposed_keys, keys);
    if (query_sums_ == QuerySums::by_product) {
      builder_.matmul(of_scores, keys, of_queries);
    } else {
      const Tensor summed = builder_.tensor(CUDNN_DATA_FLOAT, vectors_, packed(vectors_));
      builder_.matmul(of_scores, keys, summed);
      builder_.pointwise(CUDNN_POINTWISE_IDENTITY, summed, of_queries);
    }
  }

  AttentionRequest request_;
  QuerySums query_sums_;
  cudnnDataType_t stored_;
  Size rows_, vectors_, matrices_;
  GraphBuilder builder_;
};

AttentionOperands named(const AttentionRequest& request, const Operands& operands) {
  const auto& t = operands.tensors;
  if (!request.backward) return {.qkv = t[0], .out = t[1], .sums = t[2]};
  return {.qkv = t[0],
          .out = t[1],
          .sums = t[2],
          .out_gradient = t[3],
          .products = t[4],
          .qkv_gradient = t[5]};
}

class OwnImplementation final : public Implementation {
 public:
  OwnImplementation(const AttentionRequest& request, AttentionWork work)
      : request_(request), work_(std::move(work)) {}
  std::size_t workspace_bytes() const override { return 0; }
  void run(const Operands& operands, Stream stream) override {
    work_(named(request_, operands), stream);
  }

 private:
  AttentionRequest request_;
  AttentionWork work_;
};

// Of the graph's tensors, in its order. The workspace begins with the sums of queries.
class GraphImplementation final : public Implementation {
 public:
  GraphImplementation(const AttentionRequest& request, QuerySums sums,
                      std::shared_ptr<Implementation> graph)
      : request_(request),
        sums_bytes_(query_sums_bytes(request, sums)),
        graph_(std::move(graph)),
        numbers_{1 / std::sqrt(static_cast<float>(request.width)),
                 std::numeric_limits<float>::lowest(), 1} {}
  std::size_t workspace_bytes() const override { return sums_bytes_ + graph_->workspace_bytes(); }
  void run(const Operands& operands, Stream stream) override {
    const AttentionOperands o = named(request_, operands);
    void *const scale = &numbers_[0], *const least = &numbers_[1], *const one = &numbers_[2];
    const auto part = [&](void* of, int index) -> void* {
      const std::size_t elements = std::size_t{1} * request_.heads * request_.width * index;
      return static_cast<std::byte*>(of) + elements * size_of(stored_as(request_.math));
    };
    Operands placed;
    if (request_.backward) {
      placed.tensors = {part(o.qkv, 0),
                        part(o.qkv, 1),
                        part(o.qkv, 2),
                        o.out,
                        o.out_gradient,
                        o.sums,
                        o.products,
                        part(o.qkv_gradient, 0),
                        part(o.qkv_gradient, 1),
                        part(o.qkv_gradient, 2),
                        scale,
                        least,
                        one,
                        operands.workspace};
    } else {
      placed.tensors = {part(o.qkv, 0), part(o.qkv, 1), part(o.qkv, 2), o.out,
                        o.sums,         scale,          least};
    }
    placed.workspace = static_cast<std::byte*>(operands.workspace) + sums_bytes_;
    graph_->run(placed, stream);
  }

 private:
  AttentionRequest request_;
  std::size_t sums_bytes_;
  std::shared_ptr<Implementation> graph_;
  std::array<float, kNumbers> numbers_;  // read when it is queued
};

bool is_for_cudnn(const AttentionRequest& request) {
  return stored_as(request.math) != DType::f32 && !request.accumulates;
}

}  // namespace

std::string to_text(const AttentionRequest& request) {
  return fmt::format("attention{} {}x{}, {} heads of {} {}{}", request.backward ? " backward" : "",
                     request.samples, request.places, request.heads, request.width,
                     to_string(request.math), request.accumulates ? " adds" : "");
}

Operands make_operands(const AttentionRequest& request, const AttentionOperands& operands) {
  Operands placed;
  placed.tensors = {operands.qkv, operands.out, operands.sums};
  if (request.backward) {
    placed.tensors[3] = operands.out_gradient;
    placed.tensors[4] = operands.products;
    placed.tensors[5] = operands.qkv_gradient;
  }
  placed.workspace = operands.workspace;
  return placed;
}

std::vector<TensorSize> list_sizes(const AttentionRequest& request) {
  using Use = TensorSize::Use;
  const DType type = stored_as(request.math);
  const std::size_t rows = count_rows(request), out = rows * request.width;
  if (!request.backward) {
    return {{3 * out, type}, {out, type, Use::written}, {rows, DType::f32, Use::written}};
  }
  return {{3 * out, type},
          {out, type},
          {rows, DType::f32},
          {out, type},
          {rows, DType::f32, Use::written},
          {3 * out, type, request.accumulates ? Use::added_to : Use::written}};
}

Offered attention_offer(const std::shared_ptr<Session>& session, const AttentionRequest& request,
                        const EngineRules& rules, const AttentionWork& own) {
  Offered all;
  all.count = 1;
  Candidate& ours = all.candidates.emplace_back();
  ours.recipe.library = Recipe::Library::own;
  ours.build = [request, own] { return std::make_shared<OwnImplementation>(request, own); };
  if (!is_for_cudnn(request)) return all;
  try {
    const QuerySums sums = query_sums(rules);
    Offered found = offered_engines(AttentionGraph(session, request, sums).build(), rules);
    all.count += found.count;
    all.refused = found.refused;
    for (Candidate& one : found.candidates) {
      one.build = [request, sums, build = std::move(one.build)] {
        return std::make_shared<GraphImplementation>(request, sums, build());
      };
      all.candidates.push_back(std::move(one));
    }
  } catch (const Error& error) {
    log::debug("{}: cuDNN refuses it: {}", to_text(request), error.what());
    all.refused = error.what();
  }
  return all;
}

std::shared_ptr<Implementation> build_attention(const std::shared_ptr<Session>& session,
                                                const AttentionRequest& request,
                                                const EngineRules& rules, const AttentionWork& own,
                                                const Recipe& recipe) {
  if (recipe.library == Recipe::Library::own) {
    return std::make_shared<OwnImplementation>(request, own);
  }
  const QuerySums sums = query_sums(rules);
  return std::make_shared<GraphImplementation>(
      request, sums, build_engine(AttentionGraph(session, request, sums).build(), rules, recipe));
}

}  // namespace paceline::cuda
