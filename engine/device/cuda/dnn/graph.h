// Builds graphs of cuDNN operations.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/device/cuda/dnn/choice.h"
#include "engine/device/cuda/dnn/session.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

cudnnDataType_t cudnn_type(DType type);

// Owns all parts of a graph, which cuDNN does not.
class OperationGraph {
 public:
  // `parts` has everything that `operations` refer to. Tensors in memory have the ids 1 to
  // `tensors`, in the order of Operands. Throws if cuDNN rejects the graph.
  OperationGraph(std::shared_ptr<Session> session, std::vector<Descriptor> parts,
                 std::vector<Descriptor> operations, std::size_t tensors);

  Session& session() const { return *session_; }
  const Descriptor& descriptor() const { return graph_; }
  std::size_t tensors() const { return tensors_; }

 private:
  std::shared_ptr<Session> session_;
  std::vector<Descriptor> parts_, operations_;
  Descriptor graph_;
  std::size_t tensors_;
};

class GraphBuilder {
 public:
  using Tensor = std::size_t;  // index in this graph
  using Size =
      std::array<std::int64_t, 4>;  // in cuDNN's order: batch or out, channels, rows, columns

  explicit GraphBuilder(std::shared_ptr<Session> session);

  // A tensor in memory: the next of Operands. Channels are innermost if no strides are given.
  Tensor tensor(cudnnDataType_t type, const Size& size) {
    return tensor(type, size, channels_inside(size));
  }
  Tensor tensor(cudnnDataType_t type, const Size& size, const Size& strides) {
    return add_tensor(type, size, strides, Place::memory);
  }
  // A number that is read from the host's memory: the next of Operands.
  Tensor number() { return add_tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, Place::host); }
  // A virtual tensor between two operations.
  Tensor between(cudnnDataType_t type, const Size& size, const Size& strides) {
    return add_tensor(type, size, strides, Place::between);
  }
  Tensor between(const Size& size) {
    return between(CUDNN_DATA_FLOAT, size, channels_inside(size));
  }

  // The pass computes one of x, w and y.
  void convolution(ConvPass pass, const ConvShape& shape, Tensor x, Tensor w, Tensor y,
                   bool accumulates = false);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor y);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y);
  // dx: dy times the slope at x of what `mode` is the gradient of.
  void slope(cudnnPointwiseMode_t mode, Tensor x, Tensor dy, Tensor dx);
  // y = x where the mask is true, else b.
  void select(Tensor mask, Tensor x, Tensor b, Tensor y);
  // y: the index of each element of x along an axis.
  void indices(Tensor x, int axis, Tensor y);
  // Along the axes that have the size 1 in y.
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y);
  void matmul(Tensor left, Tensor right, Tensor product);  // of each matrix
  void reshape(Tensor x, Tensor y);

  std::shared_ptr<const OperationGraph> finish();  // once

 private:
  enum class Place { memory, host, between };
  static Size channels_inside(const Size& size) {
    const auto [n, c, h, w] = size;
    return {h * w * c, 1, w * c, c};
  }
  Tensor add_tensor(cudnnDataType_t type, const Size& size, const Size& strides, Place place);
  std::size_t add_part(Descriptor part);
  Descriptor& add_operation(cudnnBackendDescriptorType_t type, const char* noun);
  using Named = std::initializer_list<std::pair<cudnnBackendAttributeName_t, Tensor>>;
  void add_pointwise(cudnnPointwiseMode_t mode, Named tensors, int axis = -1);

  std::shared_ptr<Session> session_;
  std::vector<Descriptor> parts_, operations_;
  std::size_t tensors_ = 0, between_ = 0;
};

// Decides which cuDNN engines may be used, from cuDNN's notes.

struct EngineNotes {
  bool tensor_cores = false;
  bool converts_inputs = false;  // to a narrower type
  bool narrow_sums = false;      // in less than fp32
  bool fourier = false;
  bool winograd = false;
  bool large_winograd_tiles = false;  // 6 x 6 and more: errors grow with the tile
  bool varies = false;                // the order of sums differs from run to run
  bool compiles = false;              // compiles at run time, which takes up to seconds
  bool reorders_filter = false;       // needs weights in its own order
};

struct EngineRules {
  Math math = Math::fp32;
  bool deterministic = false;
  bool may_compile = false;
};

// fp32 admits no tensor cores and nothing narrower than fp32. 16-bit types and tf32 admit no
// Winograd or Fourier transform, whose additional rounding exceeds the tolerances.
Support admits(const EngineRules& rules, const EngineNotes& notes);

// A convolution as a cuDNN graph, and cuDNN's engines for it.

// Maps a request's tensors to a product's operands and back: the first and second input of the
// pass, its output, and the epilogue's vector and `before`.
Operands make_operands(const ConvRequest& request, const ConvOperands& operands);
ConvOperands conv_operands(const ConvRequest& request, const Operands& operands);

// As offered_engines(). Throws cuDNN's error if it rejects the graph.
Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules);

// The plan for a recipe of an earlier choice. Throws if it is not supported or not admitted here.
std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe);

// From an operation graph to engines and plans, the same for every graph.

// The engines of cuDNN's heuristics (mode A, mode B, then the fallback list), each with its knobs,
// without duplicates, filtered by the rules.
Offered offered_engines(const std::shared_ptr<const OperationGraph>& graph,
                        const EngineRules& rules);

// The plan for a recipe of an earlier choice. Throws if it is not supported or not admitted here.
std::shared_ptr<Implementation> build_engine(const std::shared_ptr<const OperationGraph>& graph,
                                             const EngineRules& rules, const Recipe& recipe);

// Attention (products.h) as cuDNN graphs, in 16 bits, beside our kernels, which come first.

Operands make_operands(const AttentionRequest& request, const AttentionOperands& operands);
std::vector<TensorSize> list_sizes(const AttentionRequest& request);

Offered attention_offer(const std::shared_ptr<Session>& session, const AttentionRequest& request,
                        const EngineRules& rules, const AttentionWork& own);
std::shared_ptr<Implementation> build_attention(const std::shared_ptr<Session>& session,
                                                const AttentionRequest& request,
                                                const EngineRules& rules, const AttentionWork& own,
                                                const Recipe& recipe);

}  // namespace paceline::cuda
