// The program's operations, forward and backward.
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/loss.h"
#include "engine/device/cuda/kernels/norm_pool.h"
#include "engine/device/cuda/kernels/pool.h"
#include "engine/device/cuda/kernels/update.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

namespace {

Window make_window(const Operation& op) {
  return {op.in.height, op.in.width, op.out.height, op.out.width,
          op.kernel,    op.stride,   op.padding,    op.in.channels};
}

int count_places(const Shape& shape) {
  return shape.height * shape.width;
}

float keep_scale(const Operation& op) {
  return static_cast<float>(1 / (1 - op.rate));
}

}  // namespace

void CudaProgram::run_forward(const Operation& op, Prepared& prepared) {
  if (prepared.conv) return conv_forward(op, prepared);
  if (is_of_tokens(op.kind)) {
    return info(op.output).type == DType::bf16 ? tokens_forward<Bf16>(op, prepared)
                                               : tokens_forward<float>(op, prepared);
  }
  switch (op.kind) {
    case OpKind::cast_input:
      return cast_input(op);
    case OpKind::dense:
      return dense_forward(op, prepared);
    case OpKind::softmax_cross_entropy:
      return loss_forward(op);
    default: {
      const int plane = op.kind == OpKind::average_pool ? op.input : op.output;
      return with_type(info(plane).type,
                       [&](auto type) { planes_forward<decltype(type)>(op, prepared); });
    }
  }
}

void CudaProgram::run_backward(const Operation& op, Prepared& prepared) {
  if (prepared.conv) return conv_backward(op, prepared);
  if (is_of_tokens(op.kind)) {
    return info(op.output).type == DType::bf16 ? tokens_backward<Bf16>(op, prepared)
                                               : tokens_backward<float>(op, prepared);
  }
  switch (op.kind) {
    case OpKind::cast_input:
      return;
    case OpKind::dense:
      return dense_backward(op, prepared);
    case OpKind::softmax_cross_entropy:
      return loss_backward(op);
    default: {
      const int plane = op.kind == OpKind::average_pool ? op.input : op.output;
      return with_type(info(plane).type,
                       [&](auto type) { planes_backward<decltype(type)>(op, prepared); });
    }
  }
}

template <typename T>
Dropout<T> CudaProgram::make_dropout(const Operation& op, T* y) const {
  const std::size_t of_sample = op.out.elements();
  return {.x = y,
          .y = y,
          .kept = nullptr,
          .step = staging_.step(),
          .positions = staging_.positions(),
          .count = samples() * of_sample,
          .missing = (whole_batch() - samples()) * of_sample,
          .of_sample = of_sample,
          .layer = op.layer,
          .threshold = dropout_threshold(op.rate),
          .scale = keep_scale(op),
          .relu = false};
}

void CudaProgram::dense_forward(const Operation& op, Prepared& prepared) {
  PreparedDense& dense = *prepared.dense;
  const std::size_t in = whole_batch() * op.in.elements();
  const float* x = tensor(op.input);
  if (dense.wide_x.data()) {
    with_type(info(op.input).type, [&](auto type) {
      using T = decltype(type);
      run_vectors(Convert<float, T>{tensor<T>(op.input), floats(dense.wide_x), in}, in);
    });
    x = floats(dense.wide_x);
  }
  float* y = tensor(op.output);
  dense.forward->run({x, parameter(op.weight), y, workspace_.data(), parameter(op.bias)},
                     compute_.stream());
  const std::size_t count = whole_batch() * op.out.elements();
  if (!dense.adds_bias) {
    run_vectors(AddBias<float>{y, parameter(op.bias), count, op.out.channels, op.relu}, count);
  }
  if (op.dropout && mode_ == Mode::train) run(make_dropout(op, y), count);
}

void CudaProgram::dense_backward(const Operation& op, Prepared& prepared) {
  PreparedDense& dense = *prepared.dense;
  const std::size_t count = whole_batch() * op.out.elements();
  float* dy = tensor(op.output_grad);
  // The output is positive exactly where ReLU and dropout let the element pass.
  if (op.relu) {
    const float scale = op.dropout ? keep_scale(op) : 1;
    run_vectors(ReluBackward<float>{tensor(op.output), dy, dy, count, scale, false}, count);
  }
  if (!dense.sums_bias) {
    run_sums(BiasGradient<float>{dy, gradient(op.bias), op.out.channels}, whole_batch(),
             op.out.channels);
  }
  const float* x = dense.wide_x.data() ? floats(dense.wide_x) : tensor(op.input);
  dense.backward_weights->run({x, dy, gradient(op.weight), workspace_.data(), gradient(op.bias)},
                              compute_.stream());
  if (!dense.backward_input) return;
  float* dx = dense.wide_dx.data() ? floats(dense.wide_dx) : tensor(op.input_grad);
  dense.backward_input->run({dy, parameter(op.weight), dx, workspace_.data()}, compute_.stream());
  if (!dense.wide_dx.data()) return;
  const std::size_t in = whole_batch() * op.in.elements();
  with_type(info(op.input_grad).type, [&](auto type) {
    using T = decltype(type);
    T* to = tensor<T>(op.input_grad);
    run_vectors(Convert<T, float>{dx, to, in, op.adds_input_grad ? to : nullptr}, in);
  });
}

template <typename T>
void CudaProgram::planes_forward(const Operation& op, Prepared& prepared) {
  const std::size_t count = whole_batch() * op.out.elements();
  switch (op.kind) {
    case OpKind::batch_norm:
      return norm_forward<T>(op, prepared);
    case OpKind::relu:
      return run_vectors(ReluBackward<T>{tensor<T>(op.input), tensor<T>(op.input),
                                         tensor<T>(op.output), count, 1, false},
                         count);
    case OpKind::add:
      if (prepared.forward_inside) return;
      return run_vectors(
          Convert<T, T>{tensor<T>(op.input), tensor<T>(op.output), count, tensor<T>(op.input2)},
          count);
    case OpKind::max_pool:
      return run(MaxPool<T>{make_window(op), tensor<T>(op.input), tensor<T>(op.output),
                            tensor<std::uint8_t>(op.saved), whole_batch()},
                 count_groups(whole_batch(), op.out.height, op.out.width, op.out.channels));
    case OpKind::average_pool:
      return run(AveragePool<T>{tensor<T>(op.input), tensor(op.output), whole_batch(),
                                count_places(op.in), op.in.channels},
                 count);
    case OpKind::dropout: {
      if (mode_ == Mode::evaluate) {
        return run_vectors(Convert<T, T>{tensor<T>(op.input), tensor<T>(op.output), count}, count);
      }
      Dropout<T> dropout = make_dropout(op, tensor<T>(op.output));
      dropout.x = tensor<T>(op.input);
      dropout.kept = tensor<std::uint8_t>(op.saved);
      return run(dropout, count);
    }
    default:
      throw internal_error("not an operation on planes", op.text());
  }
}

template <typename T>
void CudaProgram::planes_backward(const Operation& op, Prepared& prepared) {
  if (op.kind == OpKind::batch_norm) return norm_backward<T>(op, prepared);
  if (op.kind == OpKind::add) return add_backward<T>(op);
  if (op.input_grad == kNone) return;
  T* dx = tensor<T>(op.input_grad);
  const std::size_t count = whole_batch() * op.in.elements();
  const bool adds = op.adds_input_grad;
  switch (op.kind) {
    case OpKind::relu:
      return run_vectors(
          ReluBackward<T>{tensor<T>(op.output), tensor<T>(op.output_grad), dx, count, 1, adds},
          count);
    case OpKind::max_pool:
      return run(MaxPoolBackward<T>{make_window(op), tensor<T>(op.output_grad),
                                    tensor<std::uint8_t>(op.saved), dx, whole_batch(), adds},
                 count_groups(whole_batch(), op.in.height, op.in.width, op.in.channels));
    case OpKind::average_pool:
      return run_pool_gradient(runtime_, prepared.way,
                               AveragePoolBackward<T>{tensor(op.output_grad), dx, whole_batch(),
                                                      count_places(op.in), op.in.channels, adds},
                               compute_.stream());
    case OpKind::dropout: {
      const std::size_t kept = samples() * op.in.elements();
      return run(DropoutBackward<T>{tensor<T>(op.output_grad), tensor<std::uint8_t>(op.saved), dx,
                                    kept, count - kept, keep_scale(op), adds},
                 count);
    }
    default:
      throw internal_error("not an operation on planes", op.text());
  }
}

template <typename T>
void CudaProgram::add_backward(const Operation& op) {
  const std::size_t count = whole_batch() * op.out.elements();
  const T* dy = tensor<T>(op.output_grad);
  const auto pass_on = [&](int to, bool adds) {
    if (to == kNone || (to == op.output_grad && !adds)) return;
    T* sum = tensor<T>(to);
    run_vectors(Convert<T, T>{dy, sum, count, adds ? sum : nullptr}, count);
  };
  pass_on(op.input2_grad, op.adds_input2_grad);
  pass_on(op.input_grad, op.adds_input_grad);
}

// `from` is the operation whose output is normalised.
template <typename Norm>
NormParameters CudaProgram::norm_parameters(const Norm& norm, int from) const {
  const Operation& before = operation(from);
  const bool without_bias = before.kind == OpKind::conv && before.bias_cancels;
  return {.gamma = parameter(norm.weight),
          .beta = parameter(norm.bias),
          .bias = without_bias ? parameter(before.bias) : nullptr,
          .running_mean = statistic(norm.mean),
          .running_variance = statistic(norm.variance),
          .gamma_gradient = gradient(norm.weight),
          .beta_gradient = gradient(norm.bias),
          .epsilon = static_cast<float>(norm.epsilon),
          .keep = static_cast<float>(norm.momentum)};
}

template <typename T>
void CudaProgram::norm_forward(const Operation& op, Prepared& prepared) {
  const int channels = op.in.channels;
  const std::size_t rows = samples() * static_cast<std::size_t>(count_places(op.in));
  const auto measure = [&](const NormState& state, const NormParameters& parameters, int input) {
    if (mode_ == Mode::evaluate) {
      run(NormFixed{channels, state, parameters}, static_cast<std::size_t>(channels));
    } else {
      run_sums(NormStatistics<T>{tensor<T>(input), rows, channels, state, parameters}, rows,
               channels, prepared.statistics_blocks);
    }
  };
  measure(prepared.norms[0], norm_parameters(op, op.from), op.input);
  if (op.pool) {
    return run(NormPool<T>{make_window(op), tensor<T>(op.input), tensor<T>(op.output),
                           tensor<std::uint8_t>(op.saved), whole_batch(), prepared.norms[0]},
               count_groups(whole_batch(), op.out.height, op.out.width, channels));
  }
  if (op.branch) measure(prepared.norms[1], norm_parameters(*op.branch, op.from2), op.input2);
  const std::size_t count = whole_batch() * op.in.elements();
  run_vectors(NormApply<T>{tensor<T>(op.input), op.add ? tensor<T>(op.input2) : nullptr,
                           tensor<T>(op.output), op.relu ? tensor<std::uint8_t>(op.saved) : nullptr,
                           count, channels, prepared.norms[0], prepared.norms[1], op.relu},
              count);
}

template <typename T>
void CudaProgram::norm_pool_backward(const Operation& op, Prepared& prepared) {
  const int channels = op.in.channels;
  const std::size_t rows = samples() * static_cast<std::size_t>(count_places(op.in));
  const T* x = tensor<T>(op.input);
  const T* dy = tensor<T>(op.output_grad);
  const auto* chosen = tensor<std::uint8_t>(op.saved);
  run_sums(NormPoolGradientSums<T>{make_window(op), x, dy, chosen, rows, prepared.norms[0],
                                   norm_parameters(op, op.from)},
           samples() * static_cast<std::size_t>(count_places(op.out)), channels);
  if (op.input_grad == kNone) return;
  run(NormPoolGradient<T>{make_window(op), x, dy, chosen, tensor<T>(op.input_grad), samples(),
                          whole_batch(), prepared.norms[0], op.adds_input_grad},
      count_groups(whole_batch(), op.in.height, op.in.width, channels));
}

template <typename T>
void CudaProgram::norm_backward(const Operation& op, Prepared& prepared) {
  if (op.pool) return norm_pool_backward<T>(op, prepared);
  op.branch ? norm_backward_by<T, true>(op, prepared) : norm_backward_by<T, false>(op, prepared);
}

template <typename T, bool kBranch>
void CudaProgram::norm_backward_by(const Operation& op, Prepared& prepared) {
  const int channels = op.in.channels;
  const std::size_t rows = samples() * static_cast<std::size_t>(count_places(op.in));
  const T* x = tensor<T>(op.input);
  const T* x2 = kBranch ? tensor<T>(op.input2) : nullptr;
  const T* dy = tensor<T>(op.output_grad);
  const std::uint8_t* signs = op.relu ? tensor<std::uint8_t>(op.saved) : nullptr;
  T* skip = op.input2_grad == kNone ? nullptr : tensor<T>(op.input2_grad);
  const NormParameters own = norm_parameters(op, op.from);
  const NormParameters branch = kBranch ? norm_parameters(*op.branch, op.from2) : NormParameters{};
  run_sums(NormGradientSums<T, kBranch>{x, x2, dy, signs, rows, channels, prepared.norms[0],
                                        prepared.norms[1], own, branch},
           rows, channels, prepared.gradient_blocks);
  const std::size_t whole = whole_batch() * op.in.elements();
  const std::size_t count = samples() * op.in.elements();
  run_vectors(NormGradient<T, kBranch>{x, x2, dy, signs,
                                       op.input_grad == kNone ? nullptr : tensor<T>(op.input_grad),
                                       skip, count, whole - count, channels, prepared.norms[0],
                                       prepared.norms[1], op.adds_input_grad, op.adds_input2_grad},
              whole);
}

RowLosses CudaProgram::row_losses(int rows) const {
  return {floats(row_loss_), reinterpret_cast<std::uint8_t*>(row_correct_.data()),
          reinterpret_cast<double*>(sums_.data()), reinterpret_cast<unsigned*>(counters_.data()),
          rows};
}

const float* CudaProgram::loss_scale() const {
  return loss_scale_.data() ? &reinterpret_cast<const LossScale*>(loss_scale_.data())->scale
                            : nullptr;
}

void CudaProgram::loss_forward(const Operation& op) {
  if (samples_ == 0) return;
  constexpr unsigned kRowThreads = 128;
  const auto classes = static_cast<int>(op.in.elements());
  runtime_.launch(
      SoftmaxLoss{tensor(op.input), staging_.labels(), tensor(op.output), row_losses(samples_),
                  classes, static_cast<float>(op.loss.label_smoothing), op.loss.double_softmax},
      {static_cast<unsigned>(samples_), kRowThreads, SoftmaxLoss::shared_bytes(kRowThreads)},
      compute_.stream());
}

void CudaProgram::loss_backward(const Operation& op) {
  const std::size_t classes = op.in.elements();
  const Targets targets = make_targets(op.loss.label_smoothing, classes);
  run(SoftmaxLossGradient{tensor(op.output), staging_.labels(), tensor(op.input_grad), samples(),
                          whole_batch() - samples(), static_cast<int>(classes), loss_scale(),
                          1.0F / static_cast<float>(global_samples_),
                          static_cast<float>(targets.at_label),
                          static_cast<float>(targets.elsewhere), op.loss.double_softmax},
      whole_batch() * classes);
}

}  // namespace paceline::cuda
