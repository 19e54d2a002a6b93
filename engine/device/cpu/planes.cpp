// The operations of the cpu device's program that go over planes, in fp32 or bf16.
#include <algorithm>

#include "engine/core/error.h"
#include "engine/device/cpu/program.h"

namespace paceline::cpu {

namespace {

Window make_window(const Operation& op, std::size_t channels) {
  return {op.in.height, op.in.width, op.out.height, op.out.width,
          op.kernel,    op.stride,   op.padding,    channels};
}

}  // namespace

CpuProgram::Images CpuProgram::images_at(int tensor) const {
  const Shape& shape = plan().tensors[static_cast<std::size_t>(tensor)].shape;
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t width = layout_at(tensor) == Layout::blocked ? std::size_t{kBlock} : channels;
  return {whole_batch() * channels / width, shape.elements() / channels, width};
}

template <typename T>
void CpuProgram::clear_missing_rows(int index) {
  const std::size_t row = plan().tensors[static_cast<std::size_t>(index)].shape.elements();
  T* data = tensor<T>(index);
  std::fill(data + samples() * row, data + whole_batch() * row, T{});
}

template <typename T>
void CpuProgram::planes_forward(const Operation& op, Prepared& prepared) {
  switch (op.kind) {
    case OpKind::cast_input:
      return cast_input<T>(op);
    case OpKind::batch_norm:
      return norm_forward<T>(op, *prepared.norm);
    case OpKind::max_pool:
      return pool_forward<T>(op);
    case OpKind::average_pool:
      return average_forward<T>(op);
    case OpKind::relu:
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        kernels_.plane<T>().relu(tensor<T>(op.input) + begin, tensor<T>(op.output) + begin,
                                 end - begin);
      });
    case OpKind::add:
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        kernels_.plane<T>().add(tensor<T>(op.input) + begin, tensor<T>(op.input2) + begin,
                                tensor<T>(op.output) + begin, end - begin);
      });
    default:
      throw internal_error("not an operation on planes", op.text());
  }
}

template <typename T>
void CpuProgram::planes_backward(const Operation& op, Prepared& prepared) {
  switch (op.kind) {
    case OpKind::batch_norm:
      return norm_backward<T>(op, *prepared.norm);
    case OpKind::max_pool:
      return pool_backward<T>(op);
    case OpKind::average_pool:
      return average_backward<T>(op);
    case OpKind::add:
      return add_backward<T>(op);
    case OpKind::relu:
      if (op.input_grad == kNone) return;
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        kernels_.plane<T>().relu_backward(
            tensor<T>(op.output) + begin, tensor<T>(op.output_grad) + begin,
            tensor<T>(op.input_grad) + begin, end - begin, op.adds_input_grad);
      });
    default:
      throw internal_error("not an operation on planes", op.text());
  }
}

template <typename T>
void CpuProgram::cast_input(const Operation& op) {
  const PlaneKernels<T>& kernels = kernels_.plane<T>();
  const std::size_t sample = op.in.elements();
  const auto channels = static_cast<std::size_t>(op.in.channels);
  const auto* floats = reinterpret_cast<const float*>(batch().images);
  const bool as_floats = batch().image_type == DType::f32;
  T* y = tensor<T>(op.output);
  if (layout_at(op.output) != Layout::nchw || channels == 1) {
    parallel_.ranges(samples() * sample, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
      as_floats ? kernels.cast_f32(floats + begin, y + begin, end - begin)
                : kernels.cast_u8(batch().images + begin, y + begin, end - begin);
    });
  } else {
    const std::size_t places = sample / channels;
    parallel_.ranges(samples(), 1, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) {
        T* to = y + n * sample;
        as_floats ? kernels.split_f32(floats + n * sample, to, places, channels)
                  : kernels.split_u8(batch().images + n * sample, to, places, channels);
      }
    });
  }
  clear_missing_rows<T>(op.output);
}

template <typename Norm>
NormArrays CpuProgram::norm_arrays(const Norm& norm) const {
  return {parameter(norm.weight),   parameter(norm.bias),  statistic(norm.mean),
          statistic(norm.variance), gradient(norm.weight), gradient(norm.bias)};
}

template <typename T>
void CpuProgram::norm_forward(const Operation& op, Norm& norm) {
  norm.forward<T>({.x = tensor<T>(op.input),
                   .skip = op.add ? tensor<T>(op.input2) : nullptr,
                   .y = tensor<T>(op.output),
                   .signs = op.relu ? tensor<std::uint8_t>(op.saved) : nullptr,
                   .arrays = norm_arrays(op),
                   .branch = op.branch ? norm_arrays(*op.branch) : NormArrays{},
                   .samples = samples(),
                   .train = mode() == Mode::train});
}

template <typename T>
void CpuProgram::norm_backward(const Operation& op, Norm& norm) {
  norm.backward<T>({.x = tensor<T>(op.input),
                    .dy = tensor<T>(op.output_grad),
                    .dx = op.input_grad == kNone ? nullptr : tensor<T>(op.input_grad),
                    .signs = op.relu ? tensor<std::uint8_t>(op.saved) : nullptr,
                    .skip = op.add ? tensor<T>(op.input2) : nullptr,
                    .skip_grad = op.input2_grad == kNone ? nullptr : tensor<T>(op.input2_grad),
                    .arrays = norm_arrays(op),
                    .branch = op.branch ? norm_arrays(*op.branch) : NormArrays{},
                    .samples = samples()});
}

template <typename T>
void CpuProgram::pool_forward(const Operation& op) {
  const Images in = images_at(op.input), out = images_at(op.output);
  const Window window = make_window(op, in.channels);
  parallel_.ranges(in.count, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.plane<T>().max_pool(window, tensor<T>(op.input) + i * in.elements(),
                                   tensor<T>(op.output) + i * out.elements(),
                                   tensor<std::uint8_t>(op.saved) + i * out.elements());
    }
  });
}

template <typename T>
void CpuProgram::pool_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  const Images in = images_at(op.input), out = images_at(op.output);
  const Window window = make_window(op, in.channels);
  parallel_.ranges(in.count, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.plane<T>().max_pool_backward(window, tensor<T>(op.output_grad) + i * out.elements(),
                                            tensor<std::uint8_t>(op.saved) + i * out.elements(),
                                            tensor<T>(op.input_grad) + i * in.elements(),
                                            op.adds_input_grad);
    }
  });
}

template <typename T>
void CpuProgram::average_forward(const Operation& op) {
  const Images in = images_at(op.input);
  parallel_.ranges(in.count, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.plane<T>().average(tensor<T>(op.input) + i * in.elements(),
                                  tensor(op.output) + i * in.channels, in.places, in.channels);
    }
  });
}

template <typename T>
void CpuProgram::average_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  const Images in = images_at(op.input);
  parallel_.ranges(in.count, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.plane<T>().average_backward(tensor(op.output_grad) + i * in.channels,
                                           tensor<T>(op.input_grad) + i * in.elements(), in.places,
                                           in.channels, op.adds_input_grad);
    }
  });
}

template <typename T>
void CpuProgram::add_backward(const Operation& op) {
  const T* dy = tensor<T>(op.output_grad);
  const auto pass_on = [&](int gradient, bool adds) {
    if (gradient == kNone || (gradient == op.output_grad && !adds)) return;
    T* dx = tensor<T>(gradient);
    over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
      if (adds) {
        kernels_.plane<T>().add(dx + begin, dy + begin, dx + begin, end - begin);
      } else {
        std::copy(dy + begin, dy + end, dx + begin);
      }
    });
  };
  pass_on(op.input2_grad, op.adds_input2_grad);
  pass_on(op.input_grad, op.adds_input_grad);
}

template void CpuProgram::clear_missing_rows<float>(int);
template void CpuProgram::clear_missing_rows<Bf16>(int);
template void CpuProgram::planes_forward<float>(const Operation&, Prepared&);
template void CpuProgram::planes_forward<Bf16>(const Operation&, Prepared&);
template void CpuProgram::planes_backward<float>(const Operation&, Prepared&);
template void CpuProgram::planes_backward<Bf16>(const Operation&, Prepared&);

}  // namespace paceline::cpu
