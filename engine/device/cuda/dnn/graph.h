// Builds graphs of cuDNN operations.
#pragma once

#include <array>
#include <memory>
#include <vector>

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

  // A tensor in memory, with channels innermost: the next of Operands.
  Tensor tensor(cudnnDataType_t type, const Size& size);
  // A virtual tensor between two operations.
  Tensor between(cudnnDataType_t type, const Size& size);

  // The pass computes one of x, w and y.
  void convolution(ConvPass pass, const ConvShape& shape, Tensor x, Tensor w, Tensor y,
                   bool accumulates = false);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor y);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y);
  // x_gradient = y_gradient where x is positive, else 0.
  void relu_gradient(Tensor y_gradient, Tensor x, Tensor x_gradient);
  void channel_sums(Tensor x, Tensor sums);
  void channel_statistics(Tensor x, Tensor sums, Tensor sums_of_squares);

  std::shared_ptr<const OperationGraph> finish();  // once

 private:
  Tensor add_tensor(cudnnDataType_t type, const Size& size, std::int64_t id, bool is_virtual);
  std::size_t add_part(Descriptor part);
  Descriptor& add_operation(cudnnBackendDescriptorType_t type, const char* noun);
  Descriptor& add_pointwise(cudnnPointwiseMode_t mode);

  std::shared_ptr<Session> session_;
  std::vector<Descriptor> parts_, operations_;
  std::size_t tensors_ = 0, between_ = 0;
};

}  // namespace paceline::cuda
