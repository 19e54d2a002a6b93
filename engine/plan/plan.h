// From a network to a flat list of operations with shapes, saved tensors, gradient-ready points
// and a memory plan. Nothing here computes; a device compiles a plan into a program.
//
// Time runs over forward operations 0..n-1 and then backward n-1..0. A *tensor* is what an
// operation writes, or the gradient of it; it lives from its writer to its last reader, and
// tensors whose lives do not meet may share memory. *Parameters* lie in one flat arena in the order
// in which their gradients become ready in backward (last layer first), so that a bucket of the
// reducer is a contiguous range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/support.h"
#include "engine/plan/network.h"

namespace paceline {

enum class OpKind {
  cast_input,
  dense,
  conv,
  batch_norm,
  relu,
  max_pool,
  average_pool,  // over the whole plane
  add,
  dropout,
  softmax_cross_entropy
};
const char* name_of(OpKind kind);

constexpr int kNone = -1;

struct Operation {
  OpKind kind;
  std::string name;        // of its layer, or of the first of those fused into it
  Shape in, out;           // of one sample
  int from = kNone;        // operation that it reads; kNone: the staging slot
  int from2 = kNone;       // add, or fused add: the other one
  int input = kNone;       // tensor read in forward; kNone: the staging slot
  int input2 = kNone;      // of from2
  int output = kNone;      // tensor written in forward
  int saved = kNone;       // tensor kept for backward beside those: pooling choice, dropout mask,
                           // signs (a bit an element) of batch_norm + relu
  int input_grad = kNone;  // tensor that backward writes; kNone: nobody needs it
  int input2_grad = kNone;
  int output_grad = kNone;
  bool adds_input_grad = false;        // backward adds to what an earlier one wrote there
  bool adds_input2_grad = false;       // the same; input2_grad may be output_grad itself, see below
  int weight = kNone, bias = kNone;    // parameters; of batch_norm: gamma and beta
  int mean = kNone, variance = kNone;  // batch_norm: running averages, in Plan::statistics
  int kernel = 0, stride = 1, padding = 0;
  double epsilon = 0, momentum = 0;  // batch_norm
  double rate = 0;                   // dropout
  double smoothing = 0;              // of the loss' labels: Network::smooth_labels
  bool softmax_twice = false;        // softmax_cross_entropy: of the softmax, as if it were logits
  std::uint32_t layer = 0;           // index of the dropout layer, for its random bits
  int pool = 0;  // fused: side of the max pooling behind it, 0 for none; behind a conv it strides
                 // as far, a batch_norm has its kernel, stride and padding above
  bool relu = false;          // fused: ReLU behind it (before the pooling)
  bool dropout = false;       // fused: dropout behind the ReLU
  bool add = false;           // fused: + input2 behind a batch_norm, before the ReLU
  bool keeps_input = false;   // backward reads the input
  bool keeps_output = false;  // backward reads the output
  // A batch_norm behind takes its sums over what this bias adds to: the bias' gradient is zero.
  bool bias_cancels = false;

  // Fused into add: from2 goes through a batch_norm of its own first (a down-sampling branch).
  struct Branch {
    std::string name;
    int weight = kNone, bias = kNone, mean = kNone, variance = kNone;
    double epsilon = 0, momentum = 0;
  };
  std::optional<Branch> branch = std::nullopt;

  bool fused() const { return relu || pool > 0 || dropout || add; }
  std::string text() const;  // "conv2d + relu + max_pool"
};

// A fused add passes the gradient on to input2 as it is behind the ReLU. Where nothing was written
// to input2's gradient before, it shares the tensor of output_grad: backward masks that in place.
inline bool masks_in_place(const Operation& op) {
  return op.input2_grad != kNone && op.input2_grad == op.output_grad;
}

struct TensorInfo {
  std::string name;
  Shape shape;  // of one sample
  DType type = DType::f32;
  int first = 0, last = 0;  // time of the writer and of the last reader
  std::size_t bytes = 0;    // of a whole batch
  std::size_t offset = 0;   // in the activation arena
};

struct ParameterInfo {
  std::string name;        // "dense/kernel"
  std::vector<int> shape;  // canonical: Keras' order (kernel rows, columns, in, out)
  std::size_t offset = 0;  // elements, in the parameter and gradient arenas
  std::size_t elements = 0;
  int fan_in = 0, fan_out = 0;  // of a kernel, for its initial values; 0: `initial`
  double initial = 0;
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
  int batch = 0;            // samples of a replica in a step, at most
  DType real = DType::f32;  // of parameters, their gradients, statistics, dense layers and the loss
  DType activation = DType::f32;  // of the sample and of planes, and of their gradients
  std::vector<Operation> operations;
  std::vector<TensorInfo> tensors;
  std::vector<ParameterInfo> parameters;  // in arena order
  std::vector<ParameterInfo> statistics;  // running averages of each replica, not reduced
  std::vector<ReadyPoint> ready;          // in backward order
  std::size_t arena_elements = 0;         // of the parameter arena, alignment included
  std::size_t statistics_elements = 0;    // of their arena
  std::size_t parameter_count = 0;
  std::size_t activation_bytes = 0;
  double flops_per_sample = 0;  // forward and backward; an addition counts as one

  std::string text() const;  // what each layer became, for the log
};

// May a device run this operation, fusions included? The planner fuses only what gets a yes.
using Supports = std::function<Support(const Operation&)>;

// The element types of a plan, as above.
struct Precision {
  Precision(DType both) : real(both), activation(both) {}
  Precision(DType real_type, DType activation_type)
      : real(real_type), activation(activation_type) {}
  DType real, activation;
};

// Throws usage for shapes that do not fit together. `notes` gets a line for each fusion refused.
Plan make_plan(const Network& network, int batch, Precision precision, const Supports& supports,
               std::vector<std::string>* notes = nullptr);

// Forward multiply-adds count as two.
double forward_flops(const Operation& operation);
double backward_flops(const Operation& operation);

}  // namespace paceline
