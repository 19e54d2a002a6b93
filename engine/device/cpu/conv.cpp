#include "engine/device/cpu/conv.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::cpu {

namespace {

// A 1x1 convolution of stride 1 is a matrix product over all places of all samples.
bool is_product(const Operation& op) {
  return op.kernel == 1 && op.stride == 1 && op.padding == 0;
}

bool reads_few_places(const Operation& op) {
  return op.kernel == 1 && op.stride > 1 && op.padding == 0;
}

Operation without_stride(Operation op) {
  op.in = {op.out.height, op.out.width, op.in.channels};
  op.stride = 1;
  return op;
}

}  // namespace

Conv::Conv(const Operation& operation, const LibraryKernel::Planes& planes, const Kernels& kernels,
           const Parallel& parallel)
    : op_(operation),
      kernels_(kernels),
      parallel_(parallel),
      planes_(planes),
      compact_(reads_few_places(operation) && planes.x != Layout::nchw),
      inner_(compact_ ? without_stride(operation) : operation),
      forward_(LibraryKernel::conv_forward(inner_, planes)) {
  choose_backward_weights(planes);
  if (op_.input_grad != kNone) choose_backward_data(planes);
  for (const LibraryKernel* kernel : {&forward_, &data_, &weights_}) {
    scratch_bytes_ = std::max(scratch_bytes_, kernel->scratch_bytes());
  }
  if (own_weights_) scratch_bytes_ = std::max(scratch_bytes_, own_weights_->scratch_bytes());
  if (compact_ || (op_.adds_input_grad && !sums_)) scratch_bytes_ += input_bytes();
}

std::size_t Conv::input_bytes() const {
  constexpr std::size_t kLine = 64;
  const std::size_t elements = static_cast<std::size_t>(planes_.batch) * inner_.in.elements();
  return (elements * size_of(planes_.type) + kLine - 1) / kLine * kLine;
}

// oneDNN 2.6 runs bf16 weight gradients at half the rate of its forward kernels, 1x1 ones below
// that; as a matrix product they are better, but worse than our own loops where there are such and
// the library has no matrix tiles. Ours take a stride as it is.
void Conv::choose_backward_weights(const LibraryKernel::Planes& planes) {
  const bool rows = planes.x == Layout::nhwc && planes.y == Layout::nhwc;
  const bool bf16 = planes.type == DType::bf16 && rows && op_.bias_cancels;
  if (bf16 && !library_has_amx() && WeightGradient::supports(op_, kernels_)) {
    own_weights_.emplace(op_, planes.batch, kernels_, parallel_);
  } else if (bf16 && is_product(inner_)) {
    as_product_ = true;
    const int places = planes.batch * inner_.in.height * inner_.in.width;
    weights_ = LibraryKernel::matmul(inner_.in.channels, places, inner_.out.channels, true, false,
                                     planes.type);
  } else {
    weights_ = LibraryKernel::conv_backward_weights(inner_, planes);
  }
}

void Conv::choose_backward_data(const LibraryKernel::Planes& planes) {
  if (is_product(inner_) && inner_.in.channels % kBlock == 0) {
    // In bf16 oneDNN's own addition costs more than a pass of ours behind it.
    sums_ = op_.adds_input_grad && !compact_ && planes.type == DType::f32;
    data_ = LibraryKernel::conv_backward_data_1x1(inner_, planes, sums_);
  } else {
    data_ = LibraryKernel::conv_backward_data(inner_, planes);
  }
}

std::string Conv::implementation() const {
  return fmt::format(
      "{}{}; backward {}{}", compact_ ? "gathered, " : "", forward_.implementation(),
      own_weights_ ? fmt::format("loops:{}", kernels_.isa) : weights_.implementation(),
      data_ ? ", " + data_.implementation() : "");
}

void Conv::forward(const void* x, const float* w, const float* b, void* y, std::byte* scratch) {
  if (compact_) {
    planes_.type == DType::bf16 ? gather<Bf16>(x, scratch) : gather<float>(x, scratch);
    x = scratch;
    scratch += input_bytes();
  }
  forward_.run({.left = x, .right = w, .bias = b, .out = y}, scratch);
}

void Conv::backward(const Backward& work, std::byte* scratch) {
  if (op_.bias_cancels) std::fill_n(work.db, op_.out.channels, 0.0F);
  backward_weights(work, scratch);
  if (work.dx) backward_data(work, scratch);
}

void Conv::backward_weights(const Backward& work, std::byte* scratch) {
  if (own_weights_) {
    own_weights_->run(static_cast<const Bf16*>(work.x), static_cast<const Bf16*>(work.dy), work.dw,
                      scratch);
    return;
  }
  const void* x = work.x;
  if (compact_) {
    planes_.type == DType::bf16 ? gather<Bf16>(x, scratch) : gather<float>(x, scratch);
    x = scratch;
    scratch += input_bytes();
  }
  if (as_product_) {
    weights_.run({.left = x, .right = work.dy, .out = work.dw}, scratch);
  } else {
    weights_.run({.left = work.dy, .right = x, .out = work.dw, .bias_out = work.db}, scratch);
  }
}

void Conv::backward_data(const Backward& work, std::byte* scratch) {
  const bool direct = !compact_ && (!op_.adds_input_grad || sums_);
  void* dx = direct ? work.dx : scratch;
  data_.run({.left = work.dy, .right = work.w, .out = dx},
            direct ? scratch : scratch + input_bytes());
  if (direct) return;
  const bool bf16 = planes_.type == DType::bf16;
  if (compact_) {
    bf16 ? scatter<Bf16>(dx, work.dx) : scatter<float>(dx, work.dx);
  } else {
    bf16 ? add<Bf16>(dx, work.dx) : add<float>(dx, work.dx);
  }
}

// The images of a blocked layout, or whole samples.
Window Conv::window() const {
  const std::size_t channels = planes_.x == Layout::blocked
                                   ? std::size_t{kBlock}
                                   : static_cast<std::size_t>(op_.in.channels);
  return {op_.in.height, op_.in.width, op_.out.height, op_.out.width,
          op_.kernel,    op_.stride,   op_.padding,    channels};
}

// Calls visit(first element in the input, and in the compact plane) for each image.
template <typename Visit>
void Conv::over_images(const Window& w, Visit visit) const {
  const auto channels = static_cast<std::size_t>(op_.in.channels);
  const std::size_t in = op_.in.elements() / channels * w.channels;
  const std::size_t out = inner_.in.elements() / channels * w.channels;
  const std::size_t images = static_cast<std::size_t>(planes_.batch) * channels / w.channels;
  parallel_.ranges(images, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) visit(i * in, i * out);
  });
}

template <typename T>
void Conv::gather(const void* x, void* y) const {
  const Window w = window();
  over_images(w, [&](std::size_t in, std::size_t out) {
    kernels_.plane<T>().gather(w, static_cast<const T*>(x) + in, static_cast<T*>(y) + out);
  });
}

template <typename T>
void Conv::scatter(const void* dy, void* dx) const {
  const Window w = window();
  over_images(w, [&](std::size_t in, std::size_t out) {
    kernels_.plane<T>().scatter(w, static_cast<const T*>(dy) + out, static_cast<T*>(dx) + in,
                                op_.adds_input_grad);
  });
}

template <typename T>
void Conv::add(const void* part, void* sum) const {
  const std::size_t count = static_cast<std::size_t>(planes_.batch) * op_.in.elements();
  parallel_.ranges(count, 64, 16384, [&](std::size_t begin, std::size_t end) {
    T* dx = static_cast<T*>(sum) + begin;
    kernels_.plane<T>().add(dx, static_cast<const T*>(part) + begin, dx, end - begin);
  });
}

}  // namespace paceline::cpu
