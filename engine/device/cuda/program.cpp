// Setting a program up, and what a host sees of it. Its operations are in operations.cpp, what
// becomes of gradients in updates.cpp.
#include "engine/device/cuda/program.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/norm.h"
#include "engine/device/cuda/kernels/tokens.h"
#include "engine/device/cuda/kernels/update.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

namespace {

// out, row, column, in and back: canonical order is row, column, in, out.
template <typename Visit>
void for_each_weight(const Operation& op, Visit visit) {
  const int k = std::max(op.kernel, 1), in = op.in.channels, out = op.out.channels;
  std::size_t own = 0;
  for (int o = 0; o < out; ++o) {
    for (int place = 0; place < k * k; ++place) {
      for (int i = 0; i < in; ++i) {
        visit(own++, (static_cast<std::size_t>(place) * static_cast<std::size_t>(in) +
                      static_cast<std::size_t>(i)) *
                             static_cast<std::size_t>(out) +
                         static_cast<std::size_t>(o));
      }
    }
  }
}

}  // namespace

CudaProgram::CudaProgram(const Plan& plan, std::byte* gradients, Runtime& runtime,
                         Products& products, StreamLane& compute, StreamLane& copy,
                         StreamLane& comm, const CudaDeviceOptions& options)
    : plan_(plan),
      gradients_(gradients),
      runtime_(runtime),
      products_(products),
      compute_(compute),
      second_(runtime),
      forked_(runtime),
      options_(options),
      staging_(runtime, compute, copy, plan.batch, plan.sample.elements()),
      activations_(runtime.device_memory(plan.activation_bytes)),
      parameters_(runtime.device_memory(plan.arena_elements * sizeof(float))),
      statistics_(runtime.device_memory(plan.statistics_elements * sizeof(float))),
      sums_(own(3 * sizeof(double))),
      host_sums_(runtime.pinned_memory(sums_.bytes())),
      row_loss_(own(count_labels() * sizeof(float))),
      row_correct_(own(count_labels())),
      rule_(own(sizeof(UpdateRule))),
      decays_(own(plan.arena_elements / kDecayGroup + 1)),
      square_sums_(own(SquareSums::blocks(plan.arena_elements) * sizeof(double))),
      clip_(own(sizeof(ClipState))),
      prepared_(plan.operations.size()),
      replays_(runtime, compute, comm, options.replays) {
  if (narrow()) {
    narrow_parameters_ = own(plan.arena_elements * size_of(plan.activation));
    narrow_gradients_ = own(plan.arena_elements * size_of(plan.activation));
  }
  if (options_.math == Math::fp16) {
    loss_scale_ = own(sizeof(LossScale));
    const LossScale start;
    runtime_.copy(loss_scale_.data(), &start, sizeof start, compute_.stream());
    runtime_.synchronize_stream(compute_.stream());
  }
  for (std::size_t i = 0; i < prepared_.size(); ++i) prepare(plan.operations[i], prepared_[i]);
  workspace_ = own(workspace_bytes_);
  second_workspace_ = own(second_workspace_bytes_);
  partials_ = own(partial_floats_ * sizeof(float));
  counters_ = own((tiles_ + 1) * sizeof(unsigned));
  block_sums_ = own(block_sum_floats_ * sizeof(float));
  make_pieces();
  mark_decay();
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    const ParameterInfo& info = plan.statistics[i];
    write_statistic(static_cast<int>(i), std::vector<double>(info.elements, info.initial));
  }
}

CudaProgram::~CudaProgram() {
  try {
    compute_.drain();
  } catch (...) {  // whoever waits for the lane next hears of it; nobody does now
  }
}

Memory CudaProgram::own(std::size_t bytes) {
  own_bytes_ += bytes;
  return runtime_.device_memory(bytes);
}

void CudaProgram::prepare(const Operation& op, Prepared& prepared) {
  prepared.implementation = prepared.forward_inside ? "with the product before it" : "own kernel";
  switch (op.kind) {
    case OpKind::conv:
      return prepare_conv(op, prepared);
    case OpKind::dense:
      return is_product_of_places(op) ? prepare_conv(op, prepared) : prepare_dense(op, prepared);
    case OpKind::batch_norm:
      return prepare_norm(op, prepared);
    case OpKind::average_pool:
      if (op.input_grad == kNone) return;
      prepared.way =
          choose_pool_gradient(runtime_, products_,
                               {nullptr, nullptr, whole_batch(), op.in.height * op.in.width,
                                op.in.channels, op.adds_input_grad},
                               options_.math);
      if (prepared.way > 0) prepared.implementation += ", gradients a vector at a time";
      return;
    case OpKind::layer_norm:
      return prepare_layer_norm(op, prepared);
    case OpKind::embedding:
      prepared.token_order = own(count_labels() * sizeof(TokenRow));
      if (const std::size_t bytes = token_sort_bytes(count_labels()); bytes > 0) {
        prepared.token_sort = own(bytes);
      }
      return;
    case OpKind::attention:
      return prepare_attention(op, prepared);
    case OpKind::token_cross_entropy:
      return prepare_token_loss(op, prepared);
    default:
      return;
  }
}

void CudaProgram::prepare_dense(const Operation& op, Prepared& prepared) {
  PreparedDense& dense = prepared.dense.emplace();
  const auto in = static_cast<int>(op.in.elements()), out = op.out.channels;
  const bool wide = info(op.input).type != DType::f32;
  const bool adds = op.adds_input_grad && !wide;
  const Math math = dense_math();
  dense.forward = matmul({plan_.batch, in, out, false, false, false, math,
                          op.relu ? Epilogue::bias_relu : Epilogue::bias},
                         dense.adds_bias);
  dense.backward_weights = matmul(
      {in, plan_.batch, out, true, false, false, math, Epilogue::bias_gradient}, dense.sums_bias);
  need_workspace(dense.forward->workspace_bytes());
  need_workspace(dense.backward_weights->workspace_bytes());
  if (op.input_grad != kNone) {
    dense.backward_input = products_.matmul({plan_.batch, out, in, false, true, adds, math});
    need_workspace(dense.backward_input->workspace_bytes());
  }
  if (wide) {
    dense.wide_x = own(whole_batch() * op.in.elements() * sizeof(float));
    if (op.input_grad != kNone) dense.wide_dx = own(dense.wide_x.bytes());
  }
  need_sums<BiasGradient<float>>(op.out);
  prepared.implementation =
      dense.forward->implementation() + (dense.adds_bias ? ", with the bias" : "");
}

std::unique_ptr<MatmulPlan> CudaProgram::matmul(MatmulShape shape, bool& has_epilogue) {
  try {
    std::unique_ptr<MatmulPlan> plan = products_.matmul(shape);
    has_epilogue = true;
    return plan;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
  }
  has_epilogue = false;
  shape.epilogue = Epilogue::none;
  return products_.matmul(shape);
}

void CudaProgram::prepare_norm(const Operation& op, Prepared& prepared) {
  constexpr std::size_t kVectors = 7;
  const auto channels = static_cast<std::size_t>(op.in.channels);
  prepared.norm_vectors = own((op.branch ? 2 : 1) * kVectors * channels * sizeof(float));
  float* at = floats(prepared.norm_vectors);
  const auto state = [&] {
    NormState s{at,
                at + channels,
                at + 2 * channels,
                at + 3 * channels,
                at + 4 * channels,
                at + 5 * channels,
                at + 6 * channels};
    at += kVectors * channels;
    return s;
  };
  prepared.norms = {state(), op.branch ? state() : NormState{}};
  need_sums<NormGradientSums<float, true>>(op.in, kMostNormBlocks);
  const std::size_t rows = whole_batch() * op.in.elements() / channels;
  prepared.statistics_blocks =
      choose_statistics_blocks(runtime_, products_, rows, op.in.channels, options_.math);
  prepared.implementation = "own kernels, " +
                            std::string(op.pool ? "pooling inside" : "two passes") + ", sums by " +
                            std::to_string(prepared.statistics_blocks);
  if (!op.pool) {
    prepared.gradient_blocks = choose_gradient_blocks(
        runtime_, products_, rows, op.in.channels, options_.math, op.branch.has_value(), op.relu);
    prepared.implementation += " and " + std::to_string(prepared.gradient_blocks);
  }
  prepared.implementation += " blocks a multiprocessor";
}

void CudaProgram::make_pieces() {
  std::vector<GradientPiece> all;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Operation& op = plan_.operations[i];
    Prepared& prepared = prepared_[i];
    prepared.first_piece = static_cast<unsigned>(all.size());
    const auto add = [&](int parameter, GradientPiece::Kind kind) {
      const ParameterInfo& whole = plan_.parameters[static_cast<std::size_t>(parameter)];
      for (std::size_t at = 0; at < whole.elements; at += GradientPiece::kElements) {
        const std::size_t count =
            std::min<std::size_t>(whole.elements - at, GradientPiece::kElements);
        all.push_back({static_cast<std::uint32_t>(whole.offset + at),
                       static_cast<std::uint32_t>(count), kind});
      }
    };
    if (!is_product_of_places(op)) continue;
    if (narrow() && !prepared.conv->reordered_w.data()) add(op.weight, GradientPiece::narrow);
    if (op.bias_cancels) add(op.bias, GradientPiece::zero);
    if (prepared.conv->db) add(op.bias, GradientPiece::narrow);
    prepared.pieces = static_cast<unsigned>(all.size()) - prepared.first_piece;
  }
  if (all.empty()) return;
  pieces_ = own(all.size() * sizeof(GradientPiece));
  runtime_.copy(pieces_.data(), all.data(), pieces_.bytes(), compute_.stream());
  runtime_.synchronize_stream(compute_.stream());
}

void CudaProgram::load(const Batch& batch) {
  staging_.load(batch);
  samples_ = batch.samples;
  global_samples_ = batch.global_samples;
  image_type_ = batch.image_type;
}

void CudaProgram::forward(Mode mode) {
  const ProfilerRange range(runtime_, "forward");
  mode_ = mode;
  if (copies_stale_) refresh_copies();
  const auto slot = static_cast<std::size_t>(staging_.slot());
  replays_.run(
      "forward",
      {0, slot, samples(), static_cast<std::size_t>(mode), static_cast<std::size_t>(image_type_),
       // The loss of tokens computes its gradients in forward.
       plan_.reads_tokens() ? static_cast<std::size_t>(global_samples_) : 0},
      [&] { repeat_forward(0, static_cast<int>(plan_.operations.size()) - 1); });
  sample_count_ += samples_ * plan_.labels_per_sample;
}

void CudaProgram::repeat_forward(int from, int to) {
  for (int i = from; i <= to; ++i) {
    const ProfilerRange inner(runtime_, operation(i).name);
    run_forward(operation(i), prepared_[static_cast<std::size_t>(i)]);
  }
}

void CudaProgram::backward(int from, int to) {
  const ProfilerRange range(runtime_, "backward");
  const auto number = [](int value) { return static_cast<std::size_t>(value); };
  replays_.run(
      "backward",
      {1, number(staging_.slot()), samples(), number(global_samples_), number(from), number(to)},
      [&] {
        for (int i = from; i >= to; --i) {
          const ProfilerRange inner(runtime_, operation(i).name);
          run_backward(operation(i), prepared_[static_cast<std::size_t>(i)]);
        }
        finish_gradients(from, to);
      });
}

// What changes between steps is given to the device before: it is not part of a graph.
void CudaProgram::run_step(const UpdateRule* rule, const std::function<void()>& queue,
                           const std::function<void()>& forget) {
  const ProfilerRange range(runtime_, "step");
  if (copies_stale_) refresh_copies();
  Replays::Key key = {5, static_cast<std::size_t>(staging_.slot()), samples(),
                      static_cast<std::size_t>(global_samples_),
                      static_cast<std::size_t>(image_type_)};
  if (rule) {
    set_rule(*rule);
    add_rule(key, *rule);
  }
  if (!forget) return replays_.run_step(key, queue);
  replays_.run_step(key, queue, [&, count = sample_count_] {
    sample_count_ = count;
    forget();
  });
}

LossSums CudaProgram::take_sums() {
  runtime_.copy(host_sums_.data(), sums_.data(), sums_.bytes(), compute_.stream());
  runtime_.fill(sums_.data(), 0, sums_.bytes(), compute_.stream());
  compute_.drain();
  const auto* sums = reinterpret_cast<const double*>(host_sums_.data());
  return {sums[0], sums[1], std::exchange(sample_count_, 0), sums[2]};
}

const Operation* CudaProgram::conv_of_weight(int parameter) const {
  for (const Operation& op : plan_.operations) {
    if (is_product_of_places(op) && op.weight == parameter) return &op;
  }
  return nullptr;
}

std::vector<double> CudaProgram::read(const float* data, std::size_t count) const {
  std::vector<float> values(count);
  runtime_.copy(values.data(), data, count * sizeof(float), compute_.stream());
  compute_.drain();
  return {values.begin(), values.end()};
}

void CudaProgram::write(float* data, std::span<const double> values) {
  const std::vector<float> rounded(values.begin(), values.end());
  runtime_.copy(data, rounded.data(), rounded.size() * sizeof(float), compute_.stream());
  compute_.drain();
}

std::vector<double> CudaProgram::read_canonical(const float* data, int parameter) const {
  const std::vector<double> own =
      read(data, plan_.parameters[static_cast<std::size_t>(parameter)].elements);
  const Operation* conv = conv_of_weight(parameter);
  if (!conv) return own;
  std::vector<double> canonical(own.size());
  for_each_weight(*conv,
                  [&](std::size_t mine, std::size_t theirs) { canonical[theirs] = own[mine]; });
  return canonical;
}

void CudaProgram::write_canonical(float* data, int parameter, std::span<const double> values) {
  const ParameterInfo& info = plan_.parameters[static_cast<std::size_t>(parameter)];
  if (values.size() != info.elements) {
    throw internal_error("wrong number of values", info.name);
  }
  const Operation* conv = conv_of_weight(parameter);
  if (!conv) return write(data, values);
  std::vector<double> own(values.size());
  for_each_weight(*conv, [&](std::size_t mine, std::size_t theirs) { own[mine] = values[theirs]; });
  write(data, own);
}

std::vector<double> CudaProgram::read_parameter(int index) const {
  return read_canonical(parameter(index), index);
}

std::vector<double> CudaProgram::read_gradient(int index) const {
  std::vector<double> values = read_canonical(gradient(index), index);
  if (!loss_scale_.data()) return values;
  LossScale scale;
  runtime_.copy(&scale, loss_scale_.data(), sizeof scale, compute_.stream());
  compute_.drain();
  for (double& value : values) value /= static_cast<double>(scale.scale);
  return values;
}

void CudaProgram::write_parameter(int index, std::span<const double> values) {
  write_canonical(parameter(index), index, values);
  copies_stale_ = true;
}

void CudaProgram::write_gradient(int index, std::span<const double> values) {
  write_canonical(gradient(index), index, values);
}

std::vector<double> CudaProgram::read_statistic(int index) const {
  return read(statistic(index), plan_.statistics[static_cast<std::size_t>(index)].elements);
}

void CudaProgram::write_statistic(int index, std::span<const double> values) {
  const ParameterInfo& info = plan_.statistics[static_cast<std::size_t>(index)];
  if (values.size() != info.elements) {
    throw internal_error("wrong number of values", info.name);
  }
  write(statistic(index), values);
}

ProgramState CudaProgram::state(Optimizer optimizer) {
  prepare_state(optimizer);
  compute_.drain();
  const auto first = [](const Memory& memory, std::size_t bytes) {
    return std::span<std::byte>(memory.data(), memory.data() ? bytes : 0);
  };
  const std::size_t bytes = plan_.arena_elements * sizeof(float);
  return {first(parameters_, bytes), first(first_moments_, bytes), first(second_moments_, bytes),
          first(statistics_, plan_.statistics_elements * sizeof(float)),
          first(loss_scale_, sizeof(LossScale))};
}

void CudaProgram::to_canonical(int index, std::span<const std::byte> own,
                               std::byte* canonical) const {
  const Operation* conv = conv_of_weight(index);
  if (!conv) return Program::to_canonical(index, own, canonical);
  const auto* from = reinterpret_cast<const float*>(own.data());
  auto* to = reinterpret_cast<float*>(canonical);
  for_each_weight(*conv, [&](std::size_t mine, std::size_t theirs) { to[theirs] = from[mine]; });
}

void CudaProgram::from_canonical(int index, std::span<const std::byte> canonical,
                                 std::byte* own) const {
  const Operation* conv = conv_of_weight(index);
  if (!conv) return Program::from_canonical(index, canonical, own);
  const auto* from = reinterpret_cast<const float*>(canonical.data());
  auto* to = reinterpret_cast<float*>(own);
  for_each_weight(*conv, [&](std::size_t mine, std::size_t theirs) { to[mine] = from[theirs]; });
}

std::size_t CudaProgram::scratch_bytes() const {
  return own_bytes_ + staging_.bytes();
}

std::vector<std::string> CudaProgram::implementations() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    lines.push_back(plan_.operations[i].text() + ": " + prepared_[i].implementation);
  }
  if (update_way_ > 0) lines.push_back("update: 8 elements a thread at a time");
  if (replays_.gave_up_steps())
    lines.push_back("a step: graphs of its parts, as it was not captured");
  return lines;
}

}  // namespace paceline::cuda
