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

enum class OpKind { cast_input, dense, conv, relu, max_pool, dropout, softmax_cross_entropy };
const char* name_of(OpKind kind);

constexpr int kNone = -1;

struct Operation {
  OpKind kind;
  std::string name;        // of its layer, or of the first of those fused into it
  Shape in, out;           // of one sample
  int input = kNone;       // tensor read in forward; kNone: the staging slot
  int output = kNone;      // tensor written in forward
  int saved = kNone;       // tensor kept for backward beside those: pooling choice, dropout mask
  int input_grad = kNone;  // tensor that backward writes; kNone: nobody needs it
  int output_grad = kNone;
  int weight = kNone, bias = kNone;  // parameters
  int kernel = 0, stride = 1, padding = 0;
  double rate = 0;            // dropout
  std::uint32_t layer = 0;    // index of the dropout layer, for its random bits
  int pool = 0;               // fused: side of the max pooling behind it, 0 for none
  bool relu = false;          // fused: ReLU behind it (before the pooling)
  bool dropout = false;       // fused: dropout behind the ReLU
  bool keeps_input = false;   // backward reads the input
  bool keeps_output = false;  // backward reads the output

  std::string text() const;  // "conv2d + relu + max_pool"
};

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
  int fan_in = 0, fan_out = 0;  // of a kernel, for its initial values; 0 for a bias
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
  DType real = DType::f32;  // of activations, gradients and parameters
  std::vector<Operation> operations;
  std::vector<TensorInfo> tensors;
  std::vector<ParameterInfo> parameters;  // in arena order
  std::vector<ReadyPoint> ready;          // in backward order
  std::size_t arena_elements = 0;         // of the parameter arena, alignment included
  std::size_t parameter_count = 0;
  std::size_t activation_bytes = 0;
  double flops_per_sample = 0;  // forward and backward; an addition counts as one

  std::string text() const;  // what each layer became, for the log
};

// May a device run this operation, fusions included? The planner fuses only what gets a yes.
using Supports = std::function<Support(const Operation&)>;

// Throws usage for shapes that do not fit together. `notes` gets a line for each fusion refused.
Plan make_plan(const Network& network, int batch, DType real, const Supports& supports,
               std::vector<std::string>* notes = nullptr);

// Forward multiply-adds count as two.
double forward_flops(const Operation& operation);
double backward_flops(const Operation& operation);

}  // namespace paceline
