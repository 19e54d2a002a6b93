#include "engine/device/cpu/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::cpu {

namespace {

constexpr std::size_t kLine = 16;         // elements of a cache line
constexpr std::size_t kLeast = 16384;     // elements worth waking another thread for
constexpr std::size_t kLeastSamples = 4;  // the same for work a sample
constexpr std::size_t kStemTaps = 9;

StemShape stem_shape(const Operation& op) {
  return {op.in.height, op.in.width, op.out.channels};
}

}  // namespace

bool is_stem(const Operation& op) {
  return op.kind == OpKind::conv && op.relu && op.pool == 2 && op.in.channels == 1 &&
         op.kernel == 3 && op.stride == 1 && op.padding == 0 && op.out.channels % 16 == 0 &&
         op.in.height % 2 == 0 && op.in.width % 2 == 0;
}

CpuProgram::CpuProgram(const Plan& plan, std::byte* gradients, const Kernels& kernels,
                       const Parallel& parallel)
    : HostProgram(plan, gradients),
      kernels_(kernels),
      parallel_(parallel),
      prepared_(plan.operations.size()) {
  for (std::size_t i = 0; i < prepared_.size(); ++i) prepare(plan.operations[i], prepared_[i]);
}

void CpuProgram::prepare(const Operation& op, Prepared& prepared) {
  const int batch = plan().batch;
  prepared.implementation = fmt::format("loops:{}", kernels_.isa);
  if (op.kind == OpKind::dense) {
    const auto in = static_cast<int>(op.in.elements()), out = op.out.channels;
    prepared.forward = LibraryKernel::matmul(batch, in, out, false, false);
    prepared.backward_weight = LibraryKernel::matmul(in, batch, out, true, false);
    if (op.input_grad != kNone) {
      prepared.backward_input = LibraryKernel::matmul(batch, out, in, false, true);
    }
    prepared.implementation = prepared.forward.implementation();
  } else if (is_stem(op)) {
    const std::size_t floats = (kStemTaps + 1) * static_cast<std::size_t>(op.out.channels);
    prepared.partial_sums =
        host_memory(floats * sizeof(float) * static_cast<std::size_t>(parallel_.threads()));
  } else if (op.kind == OpKind::conv) {
    prepared.forward = LibraryKernel::conv_forward(op, batch);
    prepared.backward_weight = LibraryKernel::conv_backward_weights(op, batch);
    if (op.input_grad != kNone) {
      prepared.backward_input = LibraryKernel::conv_backward_data(op, batch);
    }
    prepared.implementation = prepared.forward.implementation();
  }
}

std::vector<std::string> CpuProgram::implementations() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    lines.push_back(plan().operations[i].text() + ": " + prepared_[i].implementation);
  }
  return lines;
}

void CpuProgram::run_forward(const Operation& op, int index) {
  Prepared& prepared = prepared_[static_cast<std::size_t>(index)];
  const std::size_t count = samples() * op.in.elements();
  switch (op.kind) {
    case OpKind::cast_input:
      return parallel_.ranges(count, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
        kernels_.cast(batch().images + begin, tensor(op.output) + begin, end - begin);
      });
    case OpKind::dense:
      return dense_forward(op, prepared);
    case OpKind::conv:
      return is_stem(op) ? stem_forward(op) : conv_forward(op, prepared);
    case OpKind::batch_norm:
    case OpKind::average_pool:
    case OpKind::add:
      break;
    case OpKind::relu:
      std::transform(tensor(op.input), tensor(op.input) + count, tensor(op.output),
                     [](float x) { return std::max(x, 0.0F); });
      return;
    case OpKind::max_pool:
      return pool_forward(op);
    case OpKind::dropout:
      return dropout_forward(op);
    case OpKind::softmax_cross_entropy:
      return loss_forward(op);
  }
}

void CpuProgram::run_backward(const Operation& op, int index) {
  Prepared& prepared = prepared_[static_cast<std::size_t>(index)];
  switch (op.kind) {
    case OpKind::cast_input:
      return;
    case OpKind::dense:
      return dense_backward(op, prepared);
    case OpKind::conv:
      return is_stem(op) ? stem_backward(op, prepared) : conv_backward(op, prepared);
    case OpKind::batch_norm:
    case OpKind::average_pool:
    case OpKind::add:
      break;
    case OpKind::relu:
      return plain_relu_backward(op);
    case OpKind::max_pool:
      return pool_backward(op);
    case OpKind::dropout:
      return dropout_backward(op);
    case OpKind::softmax_cross_entropy:
      return loss_backward(op);
  }
}

void CpuProgram::apply(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
                       std::size_t count) {
  const auto at = [](float* state, std::size_t begin) { return state ? state + begin : nullptr; };
  parallel_.ranges(count, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
    kernels_.update(rule, w + begin, g + begin, at(a, begin), at(b, begin), end - begin);
  });
}

DropoutBits CpuProgram::dropout_bits(const Operation& op) const {
  return {batch().dropout_key, batch().positions, batch().epoch, op.layer, op.rate};
}

void CpuProgram::dense_forward(const Operation& op, Prepared& prepared) {
  prepared.forward.run(
      {.left = tensor(op.input), .right = parameter(op.weight), .out = tensor(op.output)});
  const auto columns = static_cast<std::size_t>(op.out.channels);
  const float* bias = parameter(op.bias);
  parallel_.ranges(samples(), 1, kLeast / columns + 1, [&](std::size_t begin, std::size_t end) {
    float* rows = tensor(op.output) + begin * columns;
    if (op.dropout && mode() == Mode::train) {
      kernels_.bias_relu_dropout(rows, bias, end - begin, columns, dropout_bits(op), begin);
    } else {
      (op.relu ? kernels_.bias_relu : kernels_.bias)(rows, bias, end - begin, columns);
    }
  });
}

// The output is positive exactly where ReLU and dropout let the element pass.
void CpuProgram::relu_backward(const Operation& op, float scale) {
  parallel_.ranges(whole_batch() * op.out.elements(), kLine, kLeast,
                   [&](std::size_t begin, std::size_t end) {
                     kernels_.relu_backward(tensor(op.output) + begin,
                                            tensor(op.output_grad) + begin, scale, end - begin);
                   });
}

void CpuProgram::dense_backward(const Operation& op, Prepared& prepared) {
  if (op.relu) relu_backward(op, op.dropout ? static_cast<float>(1 / (1 - op.rate)) : 1);
  const float* dy = tensor(op.output_grad);
  const auto columns = static_cast<std::size_t>(op.out.channels);
  parallel_.ranges(
      columns, kLine, kLeast / whole_batch() + 1, [&](std::size_t begin, std::size_t end) {
        kernels_.column_sums(dy, gradient(op.bias), whole_batch(), columns, begin, end);
      });
  prepared.backward_weight.run({.left = tensor(op.input), .right = dy, .out = gradient(op.weight)});
  if (op.input_grad != kNone) {
    prepared.backward_input.run(
        {.left = dy, .right = parameter(op.weight), .out = tensor(op.input_grad)});
  }
}

void CpuProgram::conv_forward(const Operation& op, Prepared& prepared) {
  prepared.forward.run({.left = tensor(op.input),
                        .right = parameter(op.weight),
                        .bias = parameter(op.bias),
                        .out = tensor(op.output)});
  if (!op.relu) return;
  float* y = tensor(op.output);
  for (std::size_t i = 0; i < whole_batch() * op.out.elements(); ++i) y[i] = std::max(y[i], 0.0F);
}

void CpuProgram::conv_backward(const Operation& op, Prepared& prepared) {
  if (op.relu) relu_backward(op, 1);
  const float* dy = tensor(op.output_grad);
  prepared.backward_weight.run({.left = dy,
                                .right = tensor(op.input),
                                .out = gradient(op.weight),
                                .bias_out = gradient(op.bias)});
  if (op.input_grad != kNone) {
    prepared.backward_input.run(
        {.left = dy, .right = parameter(op.weight), .out = tensor(op.input_grad)});
  }
}

void CpuProgram::stem_forward(const Operation& op) {
  parallel_.ranges(samples(), 1, kLeastSamples, [&](std::size_t begin, std::size_t end) {
    const std::size_t at = begin * op.out.elements();
    kernels_.stem_forward(stem_shape(op), tensor(op.input) + begin * op.in.elements(),
                          parameter(op.weight), parameter(op.bias), tensor(op.output) + at,
                          tensor<std::uint8_t>(op.saved) + at, end - begin);
  });
}

void CpuProgram::stem_backward(const Operation& op, Prepared& prepared) {
  const auto filters = static_cast<std::size_t>(op.out.channels);
  const std::size_t stride = (kStemTaps + 1) * filters;
  auto* sums = reinterpret_cast<float*>(prepared.partial_sums.data());
  parallel_.each([&](int thread) {
    const auto [begin, end] = parallel_.share(samples(), 1, thread);
    const std::size_t at = begin * op.out.elements();
    float* mine = sums + static_cast<std::size_t>(thread) * stride;
    kernels_.stem_backward(stem_shape(op), tensor(op.input) + begin * op.in.elements(),
                           tensor(op.output_grad) + at, tensor<std::uint8_t>(op.saved) + at, mine,
                           mine + kStemTaps * filters, end - begin);
  });
  for (std::size_t i = 0; i < stride; ++i) {
    float total = 0;
    for (int t = 0; t < parallel_.threads(); ++t)
      total += sums[static_cast<std::size_t>(t) * stride + i];
    (i < kStemTaps * filters ? gradient(op.weight)[i]
                             : gradient(op.bias)[i - kStemTaps * filters]) = total;
  }
}

namespace {

// Calls visit(first element of the window, output element) for each pooled row of channels.
template <typename Visit>
void for_each_window(const Operation& op, std::size_t samples, Visit visit) {
  const auto side = static_cast<std::size_t>(op.kernel);
  const auto width = static_cast<std::size_t>(op.in.width);
  const auto channels = static_cast<std::size_t>(op.in.channels);
  std::size_t out = 0;
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(op.out.height); ++r) {
      for (std::size_t s = 0; s < static_cast<std::size_t>(op.out.width); ++s) {
        visit(n * op.in.elements() + (r * side * width + s * side) * channels, out);
        out += channels;
      }
    }
  }
}

std::size_t window_offset(const Operation& op, std::size_t place) {
  const auto side = static_cast<std::size_t>(op.kernel);
  return (place / side * static_cast<std::size_t>(op.in.width) + place % side) *
         static_cast<std::size_t>(op.in.channels);
}

}  // namespace

void CpuProgram::pool_forward(const Operation& op) {
  const float* x = tensor(op.input);
  float* y = tensor(op.output);
  auto* chosen = tensor<std::uint8_t>(op.saved);
  const auto channels = static_cast<std::size_t>(op.in.channels);
  const auto places = static_cast<std::size_t>(op.kernel * op.kernel);
  for_each_window(op, samples(), [&](std::size_t in, std::size_t out) {
    std::copy_n(x + in, channels, y + out);
    std::fill_n(chosen + out, channels, std::uint8_t{0});
    for (std::size_t place = 1; place < places; ++place) {
      const float* candidate = x + in + window_offset(op, place);
      for (std::size_t c = 0; c < channels; ++c) {
        const bool greater = candidate[c] > y[out + c];
        y[out + c] = greater ? candidate[c] : y[out + c];
        chosen[out + c] = greater ? static_cast<std::uint8_t>(place) : chosen[out + c];
      }
    }
  });
}

void CpuProgram::pool_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  float* dx = tensor(op.input_grad);
  const float* dy = tensor(op.output_grad);
  const auto* chosen = tensor<std::uint8_t>(op.saved);
  const auto channels = static_cast<std::size_t>(op.in.channels);
  std::fill_n(dx, whole_batch() * op.in.elements(), 0.0F);
  for_each_window(op, samples(), [&](std::size_t in, std::size_t out) {
    for (std::size_t c = 0; c < channels; ++c) {
      dx[in + window_offset(op, chosen[out + c]) + c] = dy[out + c];
    }
  });
}

void CpuProgram::dropout_forward(const Operation& op) {
  if (mode() == Mode::evaluate) {
    std::copy_n(tensor(op.input), samples() * op.in.elements(), tensor(op.output));
    return;
  }
  kernels_.dropout(tensor(op.input), tensor(op.output), tensor<std::uint8_t>(op.saved), samples(),
                   op.in.elements(), dropout_bits(op));
}

// The loop is a kernel because g++ 12, compiling it here, takes this function for one without
// effects and drops the call.
void CpuProgram::dropout_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  kernels_.dropout_backward(tensor(op.output_grad), tensor<std::uint8_t>(op.saved),
                            tensor(op.input_grad), static_cast<float>(1 / (1 - op.rate)),
                            samples() * op.in.elements());
  clear_missing_rows(op);
}

void CpuProgram::plain_relu_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  const std::size_t count = samples() * op.in.elements();
  std::copy_n(tensor(op.output_grad), count, tensor(op.input_grad));
  kernels_.relu_backward(tensor(op.output), tensor(op.input_grad), 1, count);
  clear_missing_rows(op);
}

void CpuProgram::clear_missing_rows(const Operation& op) {
  const std::size_t row = op.in.elements();
  float* dx = tensor(op.input_grad);
  std::fill(dx + samples() * row, dx + whole_batch() * row, 0.0F);
}

void CpuProgram::loss_forward(const Operation& op) {
  const std::size_t classes = op.in.elements();
  double loss = 0, correct = 0;
  for (std::size_t n = 0; n < samples(); ++n) {
    const float* row = tensor(op.input) + n * classes;
    float* p = tensor(op.output) + n * classes;
    const float* largest = std::max_element(row, row + classes);
    const auto label = static_cast<std::size_t>(batch().labels[n]);
    float total = 0;
    for (std::size_t j = 0; j < classes; ++j) total += p[j] = std::exp(row[j] - *largest);
    for (std::size_t j = 0; j < classes; ++j) p[j] /= total;
    loss += std::log(static_cast<double>(total)) - static_cast<double>(row[label] - *largest);
    correct += static_cast<std::size_t>(largest - row) == label;
  }
  add_sums(loss, correct);
}

void CpuProgram::loss_backward(const Operation& op) {
  const std::size_t classes = op.in.elements();
  const float scale = 1.0F / static_cast<float>(batch().global_samples);
  const float* p = tensor(op.output);
  float* dx = tensor(op.input_grad);
  for (std::size_t n = 0; n < samples(); ++n) {
    for (std::size_t j = 0; j < classes; ++j) {
      const float target = static_cast<std::size_t>(batch().labels[n]) == j ? 1 : 0;
      dx[n * classes + j] = (p[n * classes + j] - target) * scale;
    }
  }
  std::fill(dx + samples() * classes, dx + whole_batch() * classes, 0.0F);
}

}  // namespace paceline::cpu
