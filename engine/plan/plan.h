// From a network to a flat list of operations, with shapes, saved tensors, gradient-ready points
// and a memory plan. Nothing is computed here: a device compiles a plan into a program.
//
// Time runs over the forward operations 0..n-1 and then the backward ones n-1..0. A *tensor* is
// what an operation writes, or the gradient of that. It lives from its writer to its last reader,
// and tensors with disjoint lifetimes may share memory. *Parameters* are in one flat arena, in the
// order in which their gradients become ready in backward (last layer first), so that a bucket of
// the reducer is a contiguous range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/core/dtype.h"
#include "engine/plan/network.h"

namespace paceline {

enum class OpKind {
  cast_input,
  embedding,
  dense,
  conv,
  batch_norm,
  relu,
  max_pool,
  average_pool,  // over the whole plane
  add,
  dropout,
  layer_norm,
  gelu,
  attention,
  softmax_cross_entropy,
  // Of the products of each place with an embedding's table of tokens. Forward in train mode
  // computes the gradients too, since it keeps no logits: `output` is the gradient of the input,
  // and the table's gradient is set; the embedding's backward adds to that.
  token_cross_entropy
};
const char* to_string(OpKind kind);

constexpr int kNone = -1;

struct Operation {
  OpKind kind;
  std::string name;    // of its layer, or of the first layer fused into it
  Shape in, out;       // per sample
  int from = kNone;    // the operation that it reads; kNone: the staging slot
  int from2 = kNone;   // add, or fused add: the second summand
  int input = kNone;   // tensor read in forward; kNone: the staging slot
  int input2 = kNone;  // of from2
  int output = kNone;  // tensor written in forward
  // Additional tensor kept for backward: pooling positions, dropout mask, signs (one bit per
  // element) of batch_norm + relu; by place, mean and 1 / deviation of layer_norm; by place and
  // head, the logarithm of attention's sum of exponentials.
  int saved = kNone;
  int input_grad = kNone;  // tensor written in backward; kNone: not needed
  int input2_grad = kNone;
  int output_grad = kNone;
  bool adds_input_grad = false;  // backward adds to an earlier gradient
  // The same for input2_grad, which may equal output_grad; see below.
  bool adds_input2_grad = false;
  // Parameters. Norms: gamma and beta. Embedding: the tables of tokens and of places.
  int weight = kNone, bias = kNone;
  int mean = kNone, variance = kNone;  // batch_norm: running averages, in Plan::statistics
  int kernel = 0, stride = 1, padding = 0;
  double epsilon = 0, momentum = 0;  // batch_norm; layer_norm has no momentum
  int heads = 0;                     // attention
  int tied = kNone;                  // token_cross_entropy: the operation whose `weight` it shares
  double deviation = 0;              // of normal initial values; 0: Glorot's
  double rate = 0;                   // dropout
  LossConfig loss = {};              // softmax_cross_entropy
  std::uint32_t layer = 0;           // index of the dropout layer, for its random numbers
  // Fused: window side of the max pooling behind it, 0 for none; behind a conv the stride equals
  // it, behind a batch_norm kernel, stride and padding are those above.
  int pool = 0;
  bool relu = false;          // fused: ReLU after it (before the pooling)
  bool dropout = false;       // fused: dropout after the ReLU
  bool add = false;           // fused: + input2 after a batch_norm, before the ReLU
  bool keeps_input = false;   // backward reads the input
  bool keeps_output = false;  // backward reads the output
  // A following batch_norm subtracts the mean, so the gradient of this bias is zero.
  bool bias_cancels = false;

  // Fused into add: from2 first goes through a batch_norm of its own (a down-sampling branch).
  struct Branch {
    std::string name;
    int weight = kNone, bias = kNone, mean = kNone, variance = kNone;
    double epsilon = 0, momentum = 0;
  };
  std::optional<Branch> branch = std::nullopt;

  bool fused() const { return relu || pool > 0 || dropout || add; }
  std::string text() const;  // "conv2d + relu + max_pool"
};

// Gradients may share a tensor: input_grad or input2_grad may be output_grad. GELU's is computed in
// place. An addition's second summand has that of the sum if it has none yet, and so has the first
// if nothing changes it before. A fused add passes the gradient (after the ReLU) to input2
// unchanged; if they share a tensor, backward masks that in place.
struct TensorInfo {
  std::string name;
  Shape shape;  // per sample
  DType type = DType::f32;
  int first = 0, last = 0;  // time of the writer and of the last reader
  std::size_t bytes = 0;    // for a whole batch
  std::size_t offset = 0;   // in the activation arena
};

struct ParameterInfo {
  std::string name;        // "dense/kernel"
  std::vector<int> shape;  // canonical: Keras' order (kernel rows, columns, in, out)
  std::size_t offset = 0;  // elements, in the parameter and gradient arenas
  std::size_t elements = 0;
  int fan_in = 0, fan_out = 0;  // for initial values of kernels; 0: use `initial`
  double initial = 0;
  double deviation = 0;  // of normal initial values; 0: see fan_in
  bool is_matrix() const { return shape.size() > 1; }
};

// After backward of `operation`, the first `elements` of the gradient arena are final.
struct ReadyPoint {
  int operation = 0;
  std::size_t elements = 0;
};

struct Plan {
  std::string network;
  Shape sample;
  int classes = 0;
  int labels_per_sample = 1;  // of a network of tokens: its context
  bool reads_tokens() const { return operations.front().kind == OpKind::embedding; }
  int batch = 0;                  // samples of a replica per step, maximum
  DType real = DType::f32;        // of parameters, gradients, statistics, dense layers and the loss
  DType activation = DType::f32;  // of the sample and of planes, and of their gradients
  std::vector<Operation> operations;
  std::vector<TensorInfo> tensors;
  std::vector<ParameterInfo> parameters;  // in arena order
  std::vector<ParameterInfo> statistics;  // running averages of each replica; not reduced
  std::vector<ReadyPoint> ready;          // in backward order
  std::size_t arena_elements = 0;         // of the parameter arena, including alignment
  std::size_t statistics_elements = 0;    // of their arena
  std::size_t parameter_count = 0;
  std::size_t activation_bytes = 0;
  double flops_per_sample = 0;  // forward and backward; an addition counts as one
};

// Whether a device can run this operation with its fusions. The planner fuses only what is
// supported.
using Supports = std::function<Support(const Operation&)>;

// The element types of a plan: see Plan::real and Plan::activation.
struct Precision {
  Precision(DType both) : real(both), activation(both) {}
  Precision(DType real_type, DType activation_type)
      : real(real_type), activation(activation_type) {}
  DType real, activation;
};

// Throws usage if shapes do not match. Adds a line to `notes` for each rejected fusion.
Plan make_plan(const Network& network, int batch, Precision precision, const Supports& supports,
               std::vector<std::string>* notes = nullptr);

// Rows of logits that token_cross_entropy takes at a time: the most, up to `most`, that divide all.
std::size_t piece_rows(std::size_t rows, std::size_t most);

// FLOPs of forward; a multiply-add counts as two. Attention counts as if every place saw all
// others, as is usual (Chowdhery et al., arXiv 2204.02311, appendix B).
double forward_flops(const Operation& operation);
double backward_flops(const Operation& operation);

// Assigns an offset to each tensor, so that tensors alive at the same time never overlap. Largest
// first, each at the lowest offset that is free during its whole life. Returns the size of the
// arena in bytes.
std::size_t place_tensors(std::vector<TensorInfo>& tensors);

// Converts layers to operations with shapes, one per layer, before fusion: in layer order, between
// a cast_input and the loss. Throws usage if shapes do not match.
std::vector<Operation> lower(const Network& network);

// Fuses operations that can share one pass over memory: an operation with the only reader of its
// output if the device supports the combination. The longest supported fusion wins:
//
//   dense + ReLU + dropout             conv + ReLU + max pooling
//   batch_norm + ReLU + max pooling    batch_norm + add + ReLU
//   batch_norm + batch_norm of the other summand + add + ReLU
//
// Adds a line to `notes` for each rejected fusion. Throws usage for an operation that the device
// does not support at all.
std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes);

}  // namespace paceline
