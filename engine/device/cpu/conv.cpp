#include "engine/device/cpu/conv.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::cpu {

namespace {

// A 1x1 convolution of stride 1 is a matrix product over all places of all samples.
bool is_product(const Operation& op) {
  return op.kernel == 1 && op.stride == 1 && op.padding == 0;
}

}  // namespace

Conv::Conv(const Operation& operation, const LibraryKernel::Planes& planes, const Kernels& kernels,
           const Parallel& parallel)
    : op_(operation),
      kernels_(kernels),
      parallel_(parallel),
      type_(planes.type),
      batch_(static_cast<std::size_t>(planes.batch)),
      forward_(LibraryKernel::conv_forward(operation, planes)) {
  choose_backward_weights(planes);
  if (op_.input_grad != kNone) choose_backward_data(planes);
  for (const LibraryKernel* kernel : {&forward_, &data_, &weights_}) {
    scratch_bytes_ = std::max(scratch_bytes_, kernel->scratch_bytes());
  }
  if (op_.adds_input_grad && !sums_) scratch_bytes_ += input_bytes();
  if (own_weights_) scratch_bytes_ = std::max(scratch_bytes_, own_weights_->scratch_bytes());
}

// oneDNN 2.6 runs bf16 weight gradients at half the rate of its forward kernels, 1x1 ones below
// that; as a matrix product they are better, but worse than our own loops where there are such.
void Conv::choose_backward_weights(const LibraryKernel::Planes& planes) {
  const bool rows = planes.x == Layout::nhwc && planes.y == Layout::nhwc;
  const bool bf16 = planes.type == DType::bf16 && rows && op_.bias_cancels;
  if (bf16 && WeightGradient::supports(op_, kernels_)) {
    own_weights_.emplace(op_, planes.batch, kernels_, parallel_);
  } else if (bf16 && is_product(op_)) {
    as_product_ = true;
    const int places = planes.batch * op_.in.height * op_.in.width;
    weights_ =
        LibraryKernel::matmul(op_.in.channels, places, op_.out.channels, true, false, planes.type);
  } else {
    weights_ = LibraryKernel::conv_backward_weights(op_, planes);
  }
}

std::size_t Conv::input_bytes() const {
  constexpr std::size_t kLine = 64;
  return (batch_ * op_.in.elements() * size_of(type_) + kLine - 1) / kLine * kLine;
}

void Conv::choose_backward_data(const LibraryKernel::Planes& planes) {
  if (is_product(op_) && op_.in.channels % kBlock == 0) {
    // In bf16 oneDNN's own addition costs more than a pass of ours behind it.
    sums_ = op_.adds_input_grad && planes.type == DType::f32;
    data_ = LibraryKernel::conv_backward_data_1x1(op_, planes, sums_);
  } else {
    data_ = LibraryKernel::conv_backward_data(op_, planes);
  }
}

std::string Conv::implementation() const {
  return fmt::format(
      "{}; backward {}{}", forward_.implementation(),
      own_weights_ ? fmt::format("loops:{}", kernels_.isa) : weights_.implementation(),
      data_ ? ", " + data_.implementation() : "");
}

void Conv::forward(const void* x, const float* w, const float* b, void* y, std::byte* scratch) {
  forward_.run({.left = x, .right = w, .bias = b, .out = y}, scratch);
}

void Conv::backward(const Backward& work, std::byte* scratch) {
  if (op_.bias_cancels) std::fill_n(work.db, op_.out.channels, 0.0F);
  if (own_weights_) {
    own_weights_->run(static_cast<const Bf16*>(work.x), static_cast<const Bf16*>(work.dy), work.dw,
                      scratch);
  } else if (as_product_) {
    weights_.run({.left = work.x, .right = work.dy, .out = work.dw}, scratch);
  } else {
    weights_.run({.left = work.dy, .right = work.x, .out = work.dw, .bias_out = work.db}, scratch);
  }
  if (work.dx) backward_data(work, scratch);
}

void Conv::backward_data(const Backward& work, std::byte* scratch) {
  if (!op_.adds_input_grad || sums_) {
    data_.run({.left = work.dy, .right = work.w, .out = work.dx}, scratch);
    return;
  }
  std::byte* part = scratch;
  data_.run({.left = work.dy, .right = work.w, .out = part}, scratch + input_bytes());
  const std::size_t count = batch_ * op_.in.elements();
  const auto add = [&]<typename T>(const PlaneKernels<T>& kernels) {
    parallel_.ranges(count, 64, 16384, [&](std::size_t begin, std::size_t end) {
      T* dx = static_cast<T*>(work.dx) + begin;
      kernels.add(dx, reinterpret_cast<const T*>(part) + begin, dx, end - begin);
    });
  };
  type_ == DType::bf16 ? add(kernels_.plane<Bf16>()) : add(kernels_.plane<float>());
}

}  // namespace paceline::cpu
