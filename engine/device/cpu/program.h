// The cpu device's program: matrix products and general convolutions by oneDNN, everything around
// them by our own loops.
//
// Matrix products always run over the whole batch, so that no primitive is made in the middle of a
// run: rows of an incomplete last batch hold old but finite values, and their loss gradients are
// zero, so they add nothing to any parameter's gradient.
#pragma once

#include <vector>

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/host_program.h"

namespace paceline::cpu {

// Whether the operation is the first layer's fusion that `Kernels::stem_forward` runs.
bool is_stem(const Operation& operation);

class CpuProgram final : public HostProgram<float> {
 public:
  CpuProgram(const Plan& plan, std::byte* gradients, const Kernels& kernels,
             const Parallel& parallel);

  std::vector<std::string> implementations() const override;

 private:
  // What an operation needs beside the plan.
  struct Prepared {
    LibraryKernel forward, backward_input, backward_weight;
    Memory partial_sums;  // stem: gradients of each thread, added in thread order
    std::string implementation;
  };

  void prepare(const Operation& op, Prepared& prepared);
  void run_forward(const Operation& op, int index) override;
  void run_backward(const Operation& op, int index) override;
  void apply(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
             std::size_t count) override;

  void dense_forward(const Operation& op, Prepared& prepared);
  void dense_backward(const Operation& op, Prepared& prepared);
  void conv_forward(const Operation& op, Prepared& prepared);
  void conv_backward(const Operation& op, Prepared& prepared);
  void stem_forward(const Operation& op);
  void stem_backward(const Operation& op, Prepared& prepared);
  void pool_forward(const Operation& op);
  void pool_backward(const Operation& op);
  void dropout_forward(const Operation& op);
  void dropout_backward(const Operation& op);
  void loss_forward(const Operation& op);
  void loss_backward(const Operation& op);
  void relu_backward(const Operation& op, float scale);
  void plain_relu_backward(const Operation& op);
  // Input gradients of the rows that an incomplete batch lacks are zero.
  void clear_missing_rows(const Operation& op);

  DropoutBits dropout_bits(const Operation& op) const;
  std::size_t whole_batch() const { return static_cast<std::size_t>(plan().batch); }

  const Kernels& kernels_;
  const Parallel& parallel_;
  std::vector<Prepared> prepared_;
};

}  // namespace paceline::cpu
