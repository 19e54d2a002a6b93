#include "engine/device/cpu/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/device/cpu/reference_code.h"
#include "engine/device/update.h"

namespace paceline::cpu {

namespace {

constexpr std::size_t kLeastSamples = 4;  // the same for work a sample
constexpr std::size_t kStemTaps = 9;

StemShape stem_shape(const Operation& op) {
  return {op.in.height, op.in.width, op.out.channels};
}

// LossConfig::double_softmax: the loss that takes probabilities for logits. They lie in 0 to 1, so
// exp() of them needs no care.
double loss_of_probabilities(const float* p, std::size_t label, std::size_t classes) {
  double total = 0;
  for (std::size_t j = 0; j < classes; ++j) total += std::exp(static_cast<double>(p[j]));
  return std::log(total) - static_cast<double>(p[label]);
}

void gradient_of_probabilities(const float* p, std::size_t label, std::size_t classes, float scale,
                               float* dx) {
  float total = 0, weighted = 0;
  for (std::size_t j = 0; j < classes; ++j) {
    total += dx[j] = std::exp(p[j]);
    weighted += dx[j] * p[j];
  }
  const float mean = weighted / total - p[label];
  for (std::size_t j = 0; j < classes; ++j) {
    const float target = j == label ? 1 : 0;
    dx[j] = p[j] * (dx[j] / total - target - mean) * scale;
  }
}

}  // namespace

CpuProgram::CpuProgram(const Plan& plan, std::byte* gradients, const Kernels& kernels,
                       const Parallel& parallel)
    : HostProgram(plan, gradients),
      kernels_(kernels),
      parallel_(parallel),
      layouts_(choose_layouts(plan, library_has_avx512())),
      prepared_(plan.operations.size()) {
  std::size_t scratch = 0, sums = 0;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    prepare(plan.operations[i], prepared_[i]);
    scratch = std::max(scratch, scratch_size(prepared_[i]));
    const Operation& op = plan.operations[i];
    const bool vector =
        (op.kind == OpKind::dense && !is_of_tokens(op)) || op.kind == OpKind::dropout;
    if (vector && op.adds_input_grad) sums = std::max(sums, whole_batch() * op.in.elements());
  }
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    if (prepared_[i].norm) link_sums(static_cast<int>(i));
  }
  sum_space_at_ = scratch;
  scratch_ = host_memory(scratch + sums * sizeof(float));
}

std::size_t CpuProgram::scratch_size(Prepared& p) const {
  p.at = whole_lines(std::max({p.forward.scratch_bytes(), p.backward_input.scratch_bytes(),
                               p.backward_weight.scratch_bytes(), p.more_weight.scratch_bytes(),
                               p.own_forward ? p.own_forward->scratch_bytes() : 0,
                               p.own_backward_input ? p.own_backward_input->scratch_bytes() : 0,
                               p.own_backward_weight ? p.own_backward_weight->scratch_bytes() : 0,
                               p.conv ? p.conv->scratch_bytes() : 0}));
  return p.at + p.space;
}

// Dense layers and dropout take fp32; convolutions go from plane to plane.
void CpuProgram::check_types(const Operation& op) const {
  if (is_of_tokens(op)) return;
  const bool vector = op.kind == OpKind::dense || op.kind == OpKind::dropout;
  if (vector && type_at(op.input) != DType::f32) {
    throw usage_error(fmt::format("{} reads a plane in bf16, and {} layers take fp32", op.name,
                                  to_string(op.kind)),
                      plan().network,
                      "use fp32, or a network whose convolutions end with average pooling");
  }
  if (op.kind == OpKind::conv && type_at(op.input) != type_at(op.output)) {
    throw usage_error(op.name + " reads the output of a dense layer, which is fp32", plan().network,
                      "use fp32");
  }
}

void CpuProgram::prepare(const Operation& op, Prepared& prepared) {
  const int batch = plan().batch;
  prepared.implementation = fmt::format("loops:{}", kernels_.isa);
  check_types(op);
  if (is_of_tokens(op)) {
    prepare_tokens(op, prepared);
  } else if (op.kind == OpKind::dense) {
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
    const LibraryKernel::Planes planes{type_at(op.output), layout_at(op.input),
                                       layout_at(op.output), batch};
    prepared.conv.emplace(op, planes, kernels_, parallel_);
    prepared.implementation = fmt::format("{}, {} to {}", prepared.conv->implementation(),
                                          to_string(planes.x), to_string(planes.y));
  } else if (op.kind == OpKind::batch_norm) {
    prepared.norm.emplace(op, layout_at(op.output), batch, kernels_, parallel_);
  }
}

// Lets the convolutions that write what a batch_norm reads take its sums, where they can: its
// input, the branch's, and the gradient of its output, which the first operation behind it that
// writes there completes.
void CpuProgram::link_sums(int index) {
  const auto at = [this](int i) -> Prepared& { return prepared_[static_cast<std::size_t>(i)]; };
  const auto operation = [this](int i) -> const Operation& {
    return plan().operations[static_cast<std::size_t>(i)];
  };
  const Operation& op = operation(index);
  Norm& norm = *at(index).norm;
  const auto takes = [&](int i) { return i != kNone && at(i).conv && at(i).conv->sums_output(); };
  if (takes(op.from)) at(op.from).output_sums = &norm.input_sums(false);
  if (op.branch && takes(op.from2)) at(op.from2).output_sums = &norm.input_sums(true);
  for (int i = index + 1; i < static_cast<int>(prepared_.size()); ++i) {
    const Operation& writer = operation(i);
    if (writer.input_grad != op.output_grad && writer.input2_grad != op.output_grad) continue;
    if (at(i).conv && at(i).conv->sums_gradient()) at(i).completes_gradient_of = index;
    return;
  }
}

std::vector<std::string> CpuProgram::implementations() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    lines.push_back(plan().operations[i].text() + ": " + prepared_[i].implementation);
  }
  return lines;
}

std::string CpuProgram::warning() const {
  std::vector<LayerKernels> layers;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Prepared& p = prepared_[i];
    LayerKernels layer{plan().operations[i].name, {}};
    if (p.conv) layer.kernels = p.conv->library_kernels();
    for (const LibraryKernel* kernel : {&p.forward, &p.backward_weight, &p.backward_input}) {
      if (*kernel) layer.kernels.push_back(kernel->implementation());
    }
    layers.push_back(std::move(layer));
  }
  const std::string warning = reference_code_warning(layers);
  if (!warning.empty() || !widens(plan().activation)) return warning;
  return "this CPU has no fast products of bf16, so they are computed in fp32: bf16 saves memory "
         "here, but may not be faster than --precision fp32";
}

void CpuProgram::run_forward(const Operation& op, int index) {
  Prepared& prepared = prepared_[static_cast<std::size_t>(index)];
  if (is_of_tokens(op)) {
    return type_at(op.output) == DType::bf16 ? tokens_forward<Bf16>(op, prepared)
                                             : tokens_forward<float>(op, prepared);
  }
  switch (op.kind) {
    case OpKind::dense:
      return dense_forward(op, prepared);
    case OpKind::conv:
      return is_stem(op) ? stem_forward(op) : conv_forward(op, prepared);
    case OpKind::dropout:
      return dropout_forward(op);
    case OpKind::softmax_cross_entropy:
      return loss_forward(op);
    default: {
      const DType type = type_at(op.kind == OpKind::average_pool ? op.input : op.output);
      return type == DType::bf16 ? planes_forward<Bf16>(op, prepared)
                                 : planes_forward<float>(op, prepared);
    }
  }
}

void CpuProgram::run_backward(const Operation& op, int index) {
  Prepared& prepared = prepared_[static_cast<std::size_t>(index)];
  if (is_of_tokens(op)) {
    return type_at(op.output) == DType::bf16 ? tokens_backward<Bf16>(op, prepared)
                                             : tokens_backward<float>(op, prepared);
  }
  switch (op.kind) {
    case OpKind::cast_input:
      return;
    case OpKind::dense:
      return dense_backward(op, prepared);
    case OpKind::conv:
      return is_stem(op) ? stem_backward(op, prepared) : conv_backward(op, prepared);
    case OpKind::dropout:
      return dropout_backward(op);
    case OpKind::softmax_cross_entropy:
      return loss_backward(op);
    default: {
      const DType type = type_at(op.kind == OpKind::average_pool ? op.input : op.output);
      return type == DType::bf16 ? planes_backward<Bf16>(op, prepared)
                                 : planes_backward<float>(op, prepared);
    }
  }
}

void CpuProgram::apply(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
                       std::size_t count) {
  kernels_.update(rule, w, g, a, b, count);
}

void CpuProgram::in_parts(std::size_t count, std::size_t elements, const Part& body) {
  parallel_.ranges(count, (kLine + elements - 1) / elements, kLeast / elements + 1, body);
}

DropoutBits CpuProgram::dropout_bits(const Operation& op) const {
  return {batch().dropout_key, batch().positions, batch().epoch, op.layer, op.rate};
}

void CpuProgram::dense_forward(const Operation& op, Prepared& prepared) {
  prepared.forward.run(
      {.left = tensor(op.input), .right = parameter(op.weight), .out = tensor(op.output)},
      scratch_.data());
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
  prepared.backward_weight.run({.left = tensor(op.input), .right = dy, .out = gradient(op.weight)},
                               scratch_.data());
  if (op.input_grad == kNone) return;
  float* dx = op.adds_input_grad ? sum_space() : tensor(op.input_grad);
  prepared.backward_input.run({.left = dy, .right = parameter(op.weight), .out = dx},
                              scratch_.data());
  if (op.adds_input_grad) add_to(tensor(op.input_grad), dx, whole_batch() * op.in.elements());
}

void CpuProgram::conv_forward(const Operation& op, Prepared& prepared) {
  prepared.conv->forward({.x = tensor<std::byte>(op.input),
                          .w = parameter(op.weight),
                          .b = parameter(op.bias),
                          .y = tensor<std::byte>(op.output),
                          .sums = mode() == Mode::train ? prepared.output_sums : nullptr,
                          .samples = samples()},
                         scratch_.data());
  if (!op.relu) return;
  over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
    float* y = tensor(op.output) + begin;
    kernels_.plane_f32.relu(y, y, end - begin);
  });
}

void CpuProgram::conv_backward(const Operation& op, Prepared& prepared) {
  if (op.relu) relu_backward(op, 1);
  const int index = prepared.completes_gradient_of;
  std::optional<GradientSums> sums;
  if (index != kNone) {
    const Operation& norm = plan().operations[static_cast<std::size_t>(index)];
    sums = prepared_[static_cast<std::size_t>(index)].norm->gradient_sums(
        tensor<Bf16>(norm.input), norm.relu ? tensor<std::uint8_t>(norm.saved) : nullptr,
        norm.branch ? tensor<Bf16>(norm.input2) : nullptr, samples());
  }
  prepared.conv->backward(
      {.x = tensor<std::byte>(op.input),
       .dy = tensor<std::byte>(op.output_grad),
       .w = parameter(op.weight),
       .dx = op.input_grad == kNone ? nullptr : tensor<std::byte>(op.input_grad),
       .dw = gradient(op.weight),
       .db = gradient(op.bias),
       .sums = sums ? &*sums : nullptr},
      scratch_.data());
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

void CpuProgram::dropout_forward(const Operation& op) {
  if (mode() == Mode::evaluate) {
    std::copy_n(tensor(op.input), samples() * op.in.elements(), tensor(op.output));
    return;
  }
  kernels_.dropout(tensor(op.input), tensor(op.output), tensor<std::uint8_t>(op.saved), samples(),
                   op.in.elements(), dropout_bits(op));
  clear_missing_rows<float>(op.output);
}

// The loop is a kernel because g++ 12, compiling it here, takes this function for one without
// effects and drops the call.
void CpuProgram::dropout_backward(const Operation& op) {
  if (op.input_grad == kNone) return;
  const std::size_t count = samples() * op.in.elements();
  float* dx = op.adds_input_grad ? sum_space() : tensor(op.input_grad);
  kernels_.dropout_backward(tensor(op.output_grad), tensor<std::uint8_t>(op.saved), dx,
                            static_cast<float>(1 / (1 - op.rate)), count);
  if (op.adds_input_grad) return add_to(tensor(op.input_grad), dx, count);
  clear_missing_rows<float>(op.input_grad);
}

void CpuProgram::add_to(float* sum, const float* part, std::size_t count) const {
  parallel_.ranges(count, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
    kernels_.plane_f32.add(sum + begin, part + begin, sum + begin, end - begin);
  });
}

void CpuProgram::loss_forward(const Operation& op) {
  const std::size_t classes = op.in.elements();
  LossSums sums;
  for (std::size_t n = 0; n < samples(); ++n) {
    const float* row = tensor(op.input) + n * classes;
    float* p = tensor(op.output) + n * classes;
    const float* largest = std::max_element(row, row + classes);
    const auto label = static_cast<std::size_t>(batch().labels[n]);
    float total = 0;
    for (std::size_t j = 0; j < classes; ++j) total += p[j] = std::exp(row[j] - *largest);
    for (std::size_t j = 0; j < classes; ++j) p[j] /= total;
    const double log_total = std::log(static_cast<double>(total));
    sums.loss += op.loss.double_softmax ? loss_of_probabilities(p, label, classes)
                                        : smoothed_loss(row, classes, label, *largest, log_total,
                                                        op.loss.label_smoothing);
    sums.correct += static_cast<std::size_t>(largest - row) == label;
    sums.top5 += is_in_top(row, classes, label);
  }
  add_sums(sums);
}

void CpuProgram::loss_backward(const Operation& op) {
  const std::size_t classes = op.in.elements();
  const float scale = 1.0F / static_cast<float>(batch().global_samples);
  const Targets targets = make_targets(op.loss.label_smoothing, classes);
  const auto at_label = static_cast<float>(targets.at_label);
  const auto elsewhere = static_cast<float>(targets.elsewhere);
  const float* p = tensor(op.output);
  float* dx = tensor(op.input_grad);
  for (std::size_t n = 0; n < samples(); ++n) {
    if (op.loss.double_softmax) {
      gradient_of_probabilities(p + n * classes, static_cast<std::size_t>(batch().labels[n]),
                                classes, scale, dx + n * classes);
      continue;
    }
    for (std::size_t j = 0; j < classes; ++j) {
      const bool is_label = static_cast<std::size_t>(batch().labels[n]) == j;
      const float target = is_label ? at_label : elsewhere;
      dx[n * classes + j] = (p[n * classes + j] - target) * scale;
    }
  }
  std::fill(dx + samples() * classes, dx + whole_batch() * classes, 0.0F);
}

}  // namespace paceline::cpu
