#include "engine/device/cpu/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/device/cpu/parallel.h"

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
      inner_(compact_ ? without_stride(operation) : operation) {
  choose_forward(planes);
  choose_backward_weights(planes);
  if (op_.input_grad != kNone) choose_backward_data(planes);
  for (const LibraryKernel* kernel : {&forward_, &data_, &weights_}) {
    scratch_bytes_ = std::max(scratch_bytes_, kernel->scratch_bytes());
  }
  const auto also = [this](const auto&... own) {
    ((scratch_bytes_ = std::max(scratch_bytes_, own ? own->scratch_bytes() : 0)), ...);
  };
  also(winograd_forward_, winograd_data_, winograd_weights_, fp32_forward_, fp32_data_,
       fp32_weights_, pointwise_forward_, pointwise_data_, own_weights_);
  const bool gathers = compact_ && (forward_ || weights_ || data_);
  if (gathers || (data_ && op_.adds_input_grad && !sums_)) scratch_bytes_ += input_bytes();
}

std::size_t Conv::input_bytes() const {
  const std::size_t elements = static_cast<std::size_t>(planes_.batch) * inner_.in.elements();
  return whole_lines(elements * size_of(planes_.type));
}

bool Conv::bf16_rows() const {
  return planes_.type == DType::bf16 && planes_.x == Layout::nhwc && planes_.y == Layout::nhwc;
}

bool Conv::winograd_fits() const {
  return bf16_rows() && winograd_supports(op_, kernels_);
}

bool Conv::winograd_fp32_fits() const {
  const bool widens = bf16_rows() && kernels_.bf16_products == Bf16Products::widened;
  return (planes_.type == DType::f32 || widens) && planes_.x == planes_.y &&
         planes_.x != Layout::nchw && winograd_fp32_supports(op_, kernels_);
}

bool Conv::pointwise_fits() const {
  return bf16_rows() && Pointwise::supports(op_, kernels_);
}

void Conv::choose_forward(const LibraryKernel::Planes& planes) {
  if (winograd_fits()) {
    winograd_forward_.emplace(op_, planes.batch, Winograd::Pass::forward, kernels_, parallel_);
  } else if (winograd_fp32_fits()) {
    fp32_forward_.emplace(op_, planes, WinogradFp32::Pass::forward, kernels_, parallel_);
  } else if (pointwise_fits()) {
    pointwise_forward_.emplace(op_, planes.batch, Pointwise::Pass::forward, kernels_, parallel_);
  } else {
    forward_ = LibraryKernel::conv_forward(inner_, planes);
  }
}

// oneDNN 2.6 runs bf16 weight gradients at half the rate of its forward kernels, 1x1 ones below
// that; as a matrix product they are better, but worse than our own loops where there are such and
// the library has no matrix tiles. Ours take a stride as it is.
void Conv::choose_backward_weights(const LibraryKernel::Planes& planes) {
  const bool bf16 = bf16_rows() && op_.bias_cancels;
  if (winograd_fits() && op_.bias_cancels) {
    winograd_weights_.emplace(op_, planes.batch, kernels_, parallel_);
  } else if (winograd_fp32_fits() && op_.bias_cancels) {
    fp32_weights_.emplace(op_, planes, kernels_, parallel_);
  } else if (bf16 && WeightGradient::supports(op_, kernels_)) {
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
  if (winograd_fits() && !op_.adds_input_grad) {
    winograd_data_.emplace(op_, planes.batch, Winograd::Pass::backward_data, kernels_, parallel_);
  } else if (winograd_fp32_fits() && !op_.adds_input_grad) {
    fp32_data_.emplace(op_, planes, WinogradFp32::Pass::backward_data, kernels_, parallel_);
  } else if (pointwise_fits()) {
    pointwise_data_.emplace(op_, planes.batch, Pointwise::Pass::backward_data, kernels_, parallel_);
  } else if (is_product(inner_) && inner_.in.channels % kBlock == 0) {
    // In bf16 oneDNN's own addition costs more than a pass of ours behind it.
    sums_ = op_.adds_input_grad && !compact_ && planes.type == DType::f32;
    data_ = LibraryKernel::conv_backward_data_1x1(inner_, planes, sums_);
  } else {
    data_ = LibraryKernel::conv_backward_data(inner_, planes);
  }
}

std::string Conv::implementation() const {
  const std::string loops = fmt::format("loops:{}", kernels_.isa);
  const std::string winograd = fmt::format("winograd:{}", kernels_.isa);
  const auto name = [&](bool of_winograd, bool of_loops, const LibraryKernel& kernel) {
    if (of_winograd || of_loops) return of_winograd ? winograd : loops;
    return (compact_ ? "gathered, " : "") + kernel.implementation();
  };
  std::string text =
      name(winograd_forward_ || fp32_forward_, pointwise_forward_.has_value(), forward_) +
      "; backward " + name(winograd_weights_ || fp32_weights_, own_weights_.has_value(), weights_);
  if (op_.input_grad == kNone) return text;
  return text + ", " + name(winograd_data_ || fp32_data_, pointwise_data_.has_value(), data_);
}

std::vector<std::string> Conv::library_kernels() const {
  std::vector<std::string> names;
  for (const LibraryKernel* kernel : {&forward_, &weights_, &data_}) {
    if (*kernel) names.push_back(kernel->implementation());
  }
  return names;
}

void Conv::forward(const Forward& work, std::byte* scratch) {
  const auto* bf16_x = static_cast<const Bf16*>(work.x);
  auto* bf16_y = static_cast<Bf16*>(work.y);
  if (winograd_forward_) return winograd_forward_->run(bf16_x, work.w, work.b, bf16_y, scratch);
  if (fp32_forward_) return fp32_forward_->run(work.x, work.w, work.b, work.y, scratch);
  if (pointwise_forward_) {
    return pointwise_forward_->run({.x = bf16_x,
                                    .w = work.w,
                                    .bias = work.b,
                                    .y = bf16_y,
                                    .sums = work.sums,
                                    .samples = work.samples},
                                   scratch);
  }
  const void* x = work.x;
  if (compact_) {
    planes_.type == DType::bf16 ? gather<Bf16>(x, scratch) : gather<float>(x, scratch);
    x = scratch;
    scratch += input_bytes();
  }
  forward_.run({.left = x, .right = work.w, .bias = work.b, .out = work.y}, scratch);
}

void Conv::backward(const Backward& work, std::byte* scratch) {
  if (op_.bias_cancels) std::fill_n(work.db, op_.out.channels, 0.0F);
  backward_weights(work, scratch);
  if (work.dx) backward_data(work, scratch);
}

void Conv::backward_weights(const Backward& work, std::byte* scratch) {
  const auto *bf16_x = static_cast<const Bf16*>(work.x),
             *bf16_dy = static_cast<const Bf16*>(work.dy);
  if (winograd_weights_) return winograd_weights_->run(bf16_x, bf16_dy, work.dw, scratch);
  if (fp32_weights_) return fp32_weights_->run(work.x, work.dy, work.dw, scratch);
  if (own_weights_) return own_weights_->run(bf16_x, bf16_dy, work.dw, scratch);
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
  const auto* bf16_dy = static_cast<const Bf16*>(work.dy);
  auto* bf16_dx = static_cast<Bf16*>(work.dx);
  if (winograd_data_) return winograd_data_->run(bf16_dy, work.w, nullptr, bf16_dx, scratch);
  if (fp32_data_) return fp32_data_->run(work.dy, work.w, nullptr, work.dx, scratch);
  if (pointwise_data_) {
    return pointwise_data_->run({.x = bf16_dy,
                                 .w = work.w,
                                 .y = bf16_dx,
                                 .adds = op_.adds_input_grad,
                                 .gradient_sums = work.sums},
                                scratch);
  }
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
