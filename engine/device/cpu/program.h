// The cpu device's program: matrix products and general convolutions by oneDNN, everything else by
// Paceline's loops.
//
// Everything except the loss and the statistics of batch_norm runs over the whole batch, so that no
// primitive is created during a run. Samples missing in an incomplete batch are black images with
// zero loss gradients, so they add nothing to parameter gradients.
#pragma once

#include <optional>
#include <vector>

#include "engine/device/cpu/conv.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/norm.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/host_program.h"

namespace paceline::cpu {

class CpuProgram final : public HostProgram<float> {
 public:
  CpuProgram(const Plan& plan, std::byte* gradients, const Kernels& kernels,
             const Parallel& parallel);

  std::vector<std::string> implementations() const override;
  std::string warning() const override;
  std::size_t scratch_bytes() const override { return scratch_.bytes(); }

 private:
  static constexpr std::size_t kLine = 64;  // elements of a cache line that threads must not share
  static constexpr std::size_t kLeast = 16384;  // minimum elements for another thread

  // Data of an operation in addition to the plan.
  struct Prepared {
    LibraryKernel forward, backward_input, backward_weight;  // dense, token_cross_entropy
    // A dense layer of tokens is a 1x1 convolution; these replace the library's products.
    std::optional<Pointwise> own_forward, own_backward_input;
    std::optional<WeightGradient> own_backward_weight;
    LibraryKernel more_weight;      // token_cross_entropy: adds to the weights' gradient
    std::vector<TokenLoss> losses;  // token_cross_entropy
    std::size_t rows = 0;           // token_cross_entropy: at a time
    std::size_t space = 0, at = 0;  // bytes of scratch beside the library's, and where
    std::optional<Conv> conv;
    std::optional<Norm> norm;
    // For a convolution: the batch_norm sums that it computes in the same pass.
    ChannelSums* output_sums = nullptr;
    int completes_gradient_of = kNone;  // an operation
    Memory partial_sums;                // stem: gradients of each thread, summed in thread order
    std::string implementation;
  };

  void check_types(const Operation& op) const;
  void prepare(const Operation& op, Prepared& prepared);
  void link_sums(int norm);
  std::size_t scratch_size(Prepared& prepared) const;
  void run_forward(const Operation& op, int index) override;
  void run_backward(const Operation& op, int index) override;
  void apply(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
             std::size_t count) override;
  void in_parts(std::size_t count, std::size_t elements, const Part& body) override;

  void dense_forward(const Operation& op, Prepared& prepared);
  void dense_backward(const Operation& op, Prepared& prepared);
  void conv_forward(const Operation& op, Prepared& prepared);
  void conv_backward(const Operation& op, Prepared& prepared);
  void stem_forward(const Operation& op);
  void stem_backward(const Operation& op, Prepared& prepared);
  void dropout_forward(const Operation& op);
  void dropout_backward(const Operation& op);
  void loss_forward(const Operation& op);
  void loss_backward(const Operation& op);
  void relu_backward(const Operation& op, float scale);

  // Networks of tokens. T is the element type of their places.
  static bool is_of_tokens(const Operation& op);
  // Whether products of this type are computed in fp32, from operands widened to it.
  bool widens(DType type) const {
    return type == DType::bf16 && kernels_.bf16_products == Bf16Products::widened;
  }
  void prepare_tokens(const Operation& op, Prepared& prepared);
  void prepare_dense_tokens(const Operation& op, Prepared& prepared);
  template <typename T>
  void tokens_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void tokens_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void embed(const Operation& op);
  template <typename T>
  void embedding_backward(const Operation& op);
  template <typename T>
  void rows_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void rows_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void layer_norm_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void attend(const Operation& op, Prepared& prepared, bool backward);
  template <typename T>
  void token_loss(const Operation& op, Prepared& prepared);
  // The weights of an operation as T: a copy in its scratch, unless they are fp32.
  template <typename T>
  const void* weights_as(const Operation& op, std::size_t count, std::byte* space);
  template <typename T>
  void column_sums(const T* x, float* sums, std::size_t rows, std::size_t columns);
  std::byte* space(const Prepared& prepared) const { return scratch_.data() + prepared.at; }

  // T is the element type of the operation's planes.
  template <typename T>
  void planes_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void planes_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void cast_input(const Operation& op);
  template <typename T>
  void norm_forward(const Operation& op, Norm& norm);
  template <typename T>
  void norm_backward(const Operation& op, Norm& norm);
  template <typename T>
  void pool_forward(const Operation& op);
  template <typename T>
  void pool_backward(const Operation& op);
  template <typename T>
  void average_forward(const Operation& op);
  template <typename T>
  void average_backward(const Operation& op);
  template <typename T>
  void add_backward(const Operation& op);

  // The images of a plane's layout: samples, or blocks of channels of samples.
  struct Images {
    std::size_t count, places, channels;  // of one image
    std::size_t elements() const { return places * channels; }
  };
  Images images_at(int tensor) const;
  Layout layout_at(int tensor) const { return layouts_[static_cast<std::size_t>(tensor)]; }
  DType type_at(int tensor) const { return plan().tensors[static_cast<std::size_t>(tensor)].type; }
  template <typename Norm>
  NormArrays norm_arrays(const Norm& norm) const;
  // Calls body(begin, end) on parts of a whole batch's elements.
  template <typename Body>
  void over_elements(std::size_t of_sample, Body body) const {
    parallel_.ranges(whole_batch() * of_sample, kLine, kLeast, body);
  }

  void add_to(float* sum, const float* part, std::size_t count) const;
  // Scratch for a gradient of vectors that is accumulated afterwards.
  float* sum_space() const { return reinterpret_cast<float*>(scratch_.data() + sum_space_at_); }
  // Zeroes rows [samples(), batch) of a tensor.
  template <typename T>
  void clear_missing_rows(int tensor);

  DropoutBits dropout_bits(const Operation& op) const;
  std::size_t whole_batch() const { return static_cast<std::size_t>(plan().batch); }

  const Kernels& kernels_;
  const Parallel& parallel_;
  std::vector<Layout> layouts_;  // by tensor of the plan
  std::vector<Prepared> prepared_;
  Memory scratch_;
  std::size_t sum_space_at_ = 0;
};

}  // namespace paceline::cpu
