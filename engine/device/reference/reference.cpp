// The device `reference`: naive and in double, for tests and for users who doubt a number.
#include <algorithm>
#include <memory>

#include "engine/core/error.h"
#include "engine/device/device.h"
#include "engine/device/host_program.h"
#include "engine/device/reference/operations.h"

namespace paceline {

namespace {

using namespace reference;

class ReferenceProgram final : public HostProgram<double> {
 public:
  using HostProgram::HostProgram;

  std::vector<std::string> implementations() const override {
    std::vector<std::string> lines;
    for (const Operation& op : plan().operations) lines.push_back(op.text() + ": naive, double");
    return lines;
  }

 private:
  static Geometry geometry(const Operation& op) {
    return {op.in, op.out, op.kernel, op.stride, op.padding};
  }
  static std::size_t places(const Operation& op) { return static_cast<std::size_t>(op.out.height); }
  static std::size_t channels(const Operation& op) {
    return static_cast<std::size_t>(op.out.channels);
  }
  std::size_t rows(const Operation& op) const {
    return samples() * op.out.elements() / channels(op);
  }
  static AttentionShape attention_shape(const Operation& op) {
    return {places(op), channels(op), static_cast<std::size_t>(op.heads)};
  }
  NormShape norm_shape(const Operation& op) const {
    const auto channels = static_cast<std::size_t>(op.in.channels);
    return {samples() * op.in.elements() / channels, channels, op.epsilon, op.momentum};
  }
  NormArrays norm_arrays(const Operation& op) const {
    return {parameter(op.weight), parameter(op.bias), statistic(op.mean), statistic(op.variance)};
  }

  void run_forward(const Operation& op, int) override {
    const double* x = op.input == kNone ? nullptr : tensor(op.input);
    double* y = tensor(op.output);
    switch (op.kind) {
      case OpKind::cast_input:
        return cast_input(batch(), y, op.in.elements());
      case OpKind::embedding:
        return embedding_forward(batch(), parameter(op.weight), parameter(op.bias), y, places(op),
                                 channels(op));
      case OpKind::dense:
        return dense_forward(x, parameter(op.weight), parameter(op.bias), y, rows(op),
                             static_cast<std::size_t>(op.in.channels), channels(op));
      case OpKind::layer_norm:
        return layer_norm_forward(x, parameter(op.weight), parameter(op.bias), y, tensor(op.saved),
                                  rows(op), channels(op), op.epsilon);
      case OpKind::gelu:
        return gelu_forward(x, y, samples() * op.in.elements());
      case OpKind::attention:
        return attention_forward(attention_shape(op), x, y, tensor(op.saved), samples());
      case OpKind::token_cross_entropy: {
        const bool trains = mode() == Mode::train;
        return add_sums(token_cross_entropy(
            batch(), x, parameter(op.weight), places(op), static_cast<std::size_t>(op.in.channels),
            channels(op), trains ? y : nullptr, trains ? gradient(op.weight) : nullptr));
      }
      case OpKind::conv:
        return conv_forward(geometry(op), x, parameter(op.weight), parameter(op.bias), y,
                            samples());
      case OpKind::batch_norm:
        return mode() == Mode::train ? batch_norm_train(norm_shape(op), norm_arrays(op), x, y)
                                     : batch_norm_evaluate(norm_shape(op), norm_arrays(op), x, y);
      case OpKind::relu:
        return relu_forward(x, y, samples() * op.in.elements());
      case OpKind::max_pool:
        return max_pool_forward(geometry(op), x, y, tensor<std::uint8_t>(op.saved), samples());
      case OpKind::average_pool:
        return average_pool_forward(op.in, x, y, samples());
      case OpKind::add:
        return add_forward(x, tensor(op.input2), y, samples() * op.in.elements());
      case OpKind::dropout:
        if (mode() == Mode::evaluate) {
          std::copy_n(x, samples() * op.in.elements(), y);
          return;
        }
        return dropout_forward(x, y, tensor<std::uint8_t>(op.saved), batch(), op.layer,
                               batch().dropout_key, op.rate, op.in.elements());
      case OpKind::softmax_cross_entropy:
        return add_sums(
            op.loss.double_softmax
                ? softmax_twice_forward(x, batch().labels, y, samples(), op.in.elements())
                : softmax_cross_entropy_forward(x, batch().labels, y, samples(), op.in.elements(),
                                                op.loss.label_smoothing));
    }
  }

  // An input that several operations read gets the sum of their gradients: the operation's own part
  // is computed apart and added.
  void run_backward(const Operation& op, int) override {
    const std::size_t count = samples() * op.in.elements();
    if (op.input2_grad != kNone) {
      pass_on(tensor(op.output_grad), tensor(op.input2_grad), count, op.adds_input2_grad);
    }
    double* dx = op.input_grad == kNone ? nullptr : tensor(op.input_grad);
    if (!dx || !op.adds_input_grad) return run_backward_to(op, dx);
    part_.assign(count, 0.0);
    run_backward_to(op, part_.data());
    pass_on(part_.data(), dx, count, true);
  }

  static void pass_on(const double* from, double* to, std::size_t count, bool adds) {
    for (std::size_t i = 0; i < count; ++i) to[i] = adds ? to[i] + from[i] : from[i];
  }

  void run_backward_to(const Operation& op, double* dx) {
    const double* x = op.input == kNone ? nullptr : tensor(op.input);
    const double* dy = op.output_grad == kNone ? nullptr : tensor(op.output_grad);
    const std::size_t count = samples() * op.in.elements();
    switch (op.kind) {
      case OpKind::cast_input:
      case OpKind::token_cross_entropy:  // forward did it
        return;
      case OpKind::embedding:
        return embedding_backward(batch(), dy, gradient(op.weight), gradient(op.bias), places(op),
                                  channels(op));
      case OpKind::dense:
        return dense_backward(x, parameter(op.weight), dy, dx, gradient(op.weight),
                              gradient(op.bias), rows(op), static_cast<std::size_t>(op.in.channels),
                              channels(op));
      case OpKind::layer_norm:
        return layer_norm_backward(x, parameter(op.weight), tensor(op.saved), dy, dx,
                                   gradient(op.weight), gradient(op.bias), rows(op), channels(op));
      case OpKind::gelu:
        if (dx) gelu_backward(x, dy, dx, count);
        return;
      case OpKind::attention:
        if (dx) {
          attention_backward(attention_shape(op), x, tensor(op.output), tensor(op.saved), dy, dx,
                             samples());
        }
        return;
      case OpKind::conv:
        return conv_backward(geometry(op), x, parameter(op.weight), dy, dx, gradient(op.weight),
                             gradient(op.bias), samples());
      case OpKind::batch_norm:
        return batch_norm_backward(norm_shape(op), parameter(op.weight), x, dy, dx,
                                   gradient(op.weight), gradient(op.bias));
      case OpKind::relu:
        if (dx) relu_backward(tensor(op.output), dy, dx, count);
        return;
      case OpKind::max_pool:
        if (dx) max_pool_backward(geometry(op), dy, tensor<std::uint8_t>(op.saved), dx, samples());
        return;
      case OpKind::average_pool:
        if (dx) average_pool_backward(op.in, dy, dx, samples());
        return;
      case OpKind::add:
        if (dx) pass_on(dy, dx, count, false);
        return;
      case OpKind::dropout:
        if (dx) dropout_backward(dy, tensor<std::uint8_t>(op.saved), dx, op.rate, count);
        return;
      case OpKind::softmax_cross_entropy:
        if (op.loss.double_softmax) {
          return softmax_twice_backward(tensor(op.output), batch().labels, dx, samples(),
                                        op.in.elements(), batch().global_samples);
        }
        return softmax_cross_entropy_backward(tensor(op.output), batch().labels, dx, samples(),
                                              op.in.elements(), op.loss.label_smoothing,
                                              batch().global_samples);
    }
  }

  void apply(const UpdateRule& rule, double* w, const double* g, double* a, double* b,
             std::size_t count) override {
    apply_update(rule, w, g, a, b, count);
  }

  std::vector<double> part_;
};

class ReferenceDevice final : public Device {
 public:
  std::string_view name() const override { return "reference"; }
  std::string description() const override { return "naive loops in double, one thread"; }
  DType real() const override { return DType::f64; }
  Support supports(const Operation& op) const override {
    if (op.fused()) return Support::no("the reference fuses nothing");
    return Support::yes();
  }
  Memory allocate(std::size_t bytes) override { return host_memory(bytes); }
  ProbeFacts probe() override {
    return timed_probe(multiply_add_rounds,
                       [](std::byte* to, const std::byte* from, std::size_t bytes) {
                         std::copy_n(from, bytes, to);
                       });
  }
  Lane& compute_lane() override { return lane_; }
  Lane& copy_lane() override { return lane_; }
  Lane& comm_lane() override { return lane_; }
  std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) override {
    return std::make_unique<ReferenceProgram>(plan, gradients);
  }

 private:
  InlineLane lane_;
};

}  // namespace

std::unique_ptr<Device> make_reference_device(const DeviceOptions& options) {
  if (options.precision != "fp64") {
    throw usage_error("device reference computes in fp64, not " + options.precision, "",
                      "leave --precision out or give fp64");
  }
  if (options.threads != 1) {
    throw usage_error("device reference uses one compute thread per replica", "",
                      "give --compute-threads 1");
  }
  return std::make_unique<ReferenceDevice>();
}

}  // namespace paceline
