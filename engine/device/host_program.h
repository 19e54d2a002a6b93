// Base class of programs on host devices: arenas, the order of operations, loss sums, and access to
// parameters. Subclasses implement the operations and the update.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/update.h"

namespace paceline {

// T is the plan's real type: float or double.
template <typename T>
class HostProgram : public Program {
 public:
  // `plan` and `gradients` outlive the program.
  HostProgram(const Plan& plan, std::byte* gradients);

  using Program::forward;
  void load(const Batch& batch) override { batch_ = batch; }
  void forward(Mode mode) override;
  void repeat_forward(int from, int to) override {
    for (int i = from; i <= to; ++i) run(i, true);
  }
  void backward(int from, int to) override {
    for (int i = from; i >= to; --i) run(i, false);
  }
  void accumulate(Accumulate which, std::size_t begin, std::size_t end) override;
  void measure_gradients(const UpdateRule& rule) override;
  void update(const UpdateRule& rule, std::size_t begin, std::size_t end) override;
  LossSums take_sums() override { return std::exchange(sums_, {}); }
  std::byte* gradients() override { return gradients_; }
  std::vector<double> read_parameter(int index) const override {
    return read(parameter(index), at(plan_.parameters, index));
  }
  std::vector<double> read_gradient(int index) const override {
    return read(gradient(index), at(plan_.parameters, index));
  }
  void write_parameter(int index, std::span<const double> values) override {
    write(parameter(index), at(plan_.parameters, index), values);
  }
  void write_gradient(int index, std::span<const double> values) override {
    write(gradient(index), at(plan_.parameters, index), values);
  }
  std::span<const std::byte> host_parameters() const override {
    return {parameters_.data(), plan_.arena_elements * sizeof(T)};
  }
  std::vector<double> read_statistic(int index) const override {
    return read(statistic(index), at(plan_.statistics, index));
  }
  void write_statistic(int index, std::span<const double> values) override {
    write(statistic(index), at(plan_.statistics, index), values);
  }
  ProgramState state(Optimizer optimizer) override;
  bool trace(TraceRing* ring) override;
  std::vector<double> backward_seconds() const override;

 protected:
  // One operation on the current batch(); `index` is its position in the plan.
  virtual void run_forward(const Operation& op, int index) = 0;
  virtual void run_backward(const Operation& op, int index) = 0;
  virtual void apply(const UpdateRule& rule, T* w, const T* g, T* a, T* b, std::size_t count) = 0;
  // Calls body(begin, end) on parts of [0, count), on threads if the device has some. Each item
  // costs as much as `elements` elements of a vector operation.
  using Part = std::function<void(std::size_t begin, std::size_t end)>;
  virtual void in_parts(std::size_t count, std::size_t /*elements*/, const Part& body) {
    body(0, count);
  }

  const Plan& plan() const { return plan_; }
  const Batch& batch() const { return batch_; }
  std::size_t samples() const { return static_cast<std::size_t>(batch_.samples); }
  Mode mode() const { return mode_; }
  void add_sums(const LossSums& sums) { sums_ += sums; }  // forward counts the samples

  template <typename U = T>
  U* tensor(int index) const {
    return reinterpret_cast<U*>(activations_.data() +
                                plan_.tensors[static_cast<std::size_t>(index)].offset);
  }
  T* parameter(int index) const { return real(parameters_.data()) + offset(index); }
  T* gradient(int index) const { return real(gradients_) + offset(index); }
  T* statistic(int index) const {
    return real(statistics_.data()) + at(plan_.statistics, index).offset;
  }

 private:
  static T* real(std::byte* data) { return reinterpret_cast<T*>(data); }
  static const ParameterInfo& at(const std::vector<ParameterInfo>& arrays, int index) {
    return arrays[static_cast<std::size_t>(index)];
  }
  static std::vector<double> read(const T* data, const ParameterInfo& info) {
    return {data, data + info.elements};
  }
  static void write(T* data, const ParameterInfo& info, std::span<const double> values);
  std::size_t offset(int index) const { return at(plan_.parameters, index).offset; }
  void prepare_state(Optimizer optimizer);
  void update_part(const UpdateRule& rule, std::size_t begin, std::size_t end);
  void run(int index, bool forward);
  void count_backward(std::size_t index, double seconds);

  const Plan& plan_;
  std::byte* gradients_;
  Stretches stretches_;
  Memory activations_, parameters_, statistics_, state_a_, state_b_;
  Memory kept_;                      // stored gradients of earlier batches
  std::vector<double> square_sums_;  // by block of the gradient arena
  double gradient_factor_ = 1;
  bool state_ready_ = false;
  Batch batch_;
  Mode mode_ = Mode::train;
  LossSums sums_;
  std::size_t backward_passes_ = 0;
  std::vector<double> backward_sums_;  // seconds, by operation
  TraceRing* trace_ = nullptr;
  std::vector<std::string> forward_names_, backward_names_;  // for traces
};

}  // namespace paceline
