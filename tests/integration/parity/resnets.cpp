#include "tests/integration/parity/resnets.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/integration/made.h"
#include "workloads/workload.h"

namespace paceline::parity {

namespace {

constexpr double kEpsilon = 1.001e-5, kMomentum = 0.99, kBranchGamma = 0.2;

int index_in(const std::vector<ParameterInfo>& arrays, const std::string& name) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].name == name) return static_cast<int>(i);
  }
  throw std::runtime_error("no array " + name);
}

Network& unit(Network& n, const std::string& name, int filters, int kernel, int stride = 1) {
  n.conv(filters, kernel, stride, kernel / 2).named(name + "_conv");
  return n.batch_norm(kEpsilon, kMomentum).named(name + "_bn");
}

}  // namespace

Subject small_resnet() {
  Network n("small", {21, 19, 3}, 4);
  unit(n, "stem", 8, 5, 2).relu().max_pool(3, 2, 1);
  const int first = n.last();
  unit(n, "a1", 8, 3).relu();
  unit(n, "a2", 8, 3).add(first).relu();
  const int second = n.last();
  unit(n, "b0", 12, 1, 2);
  const int down = n.last();
  n.from(second);
  unit(n, "b1", 12, 3, 2).relu();
  unit(n, "b2", 12, 3).add(down).relu().global_average_pool().dense(4).named("dense");
  return {"small", n, 6, 0.01};
}

Subject resnet50_of_64() {
  Network n = resnet50_without_top("resnet50", {64, 64, 3}, 10, "v1");
  n.dense(10);
  return {"resnet50", n, 4, 0.0001};
}

SteppedResNet::SteppedResNet(const Subject& subject, const std::string& device,
                             const std::string& precision)
    : subject_(subject),
      device_(make_device(device, precision)),
      plan_(make_plan(subject_.network, subject.batch, device_->precision(),
                      [this](const Operation& op) { return device_->supports(op); })),
      gradients_(device_->allocate(plan_.arena_elements * size_of(plan_.real))),
      program_(device_->compile(plan_, gradients_.data())),
      images_(subject_.network.sample().elements() * static_cast<std::size_t>(subject.batch)),
      labels_(static_cast<std::size_t>(subject.batch)),
      positions_(labels_.size()) {
  set_weights();
}

void SteppedResNet::set(int parameter, std::uint64_t stream, double limit, double middle) {
  std::vector<double> values(plan_.parameters[static_cast<std::size_t>(parameter)].elements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (2 * (random_bits(i, stream) / 4294967296.0) - 1) * limit + middle;
  }
  program_->write_parameter(parameter, values);
}

// In the order of the network's layers, whatever the device fuses.
void SteppedResNet::set_weights() {
  std::uint64_t index = 0;
  for (const Layer& layer : subject_.network.layers()) {
    const bool norm = layer.kind == LayerKind::batch_norm;
    if (!norm && layer.kind != LayerKind::conv && layer.kind != LayerKind::dense) continue;
    const int weight = index_in(plan_.parameters, layer.name + (norm ? "/gamma" : "/kernel"));
    const int bias = index_in(plan_.parameters, layer.name + (norm ? "/beta" : "/bias"));
    const ParameterInfo& info = plan_.parameters[static_cast<std::size_t>(weight)];
    const double limit = norm ? 0.1 : std::sqrt(6.0 / (info.fan_in + info.fan_out));
    set(weight, index, limit, layer.name.ends_with("_3_bn") ? kBranchGamma : info.initial);
    set(bias, 1000 + index, 0.1, 0);
    ++index;
  }
}

double SteppedResNet::gradient_step(std::size_t step) {
  for (std::size_t i = 0; i < images_.size(); ++i) {
    images_[i] = static_cast<std::uint8_t>(random_bits(i, 3000 + step) >> 24);
  }
  for (std::size_t n = 0; n < labels_.size(); ++n) {
    const std::size_t place = (step * labels_.size() + n) * 7 / 3;
    labels_[n] =
        static_cast<std::int32_t>(place % static_cast<std::size_t>(subject_.network.classes()));
  }
  Batch batch;
  batch.images = images_.data();
  batch.labels = labels_.data();
  batch.positions = positions_.data();
  batch.samples = batch.global_samples = subject_.batch;
  program_->take_sums();
  program_->forward(batch, Mode::train);
  program_->backward(static_cast<int>(plan_.operations.size()) - 1, 0);
  return program_->take_sums().loss / subject_.batch;
}

void SteppedResNet::update() {
  program_->update(update_rule(Optimizer::momentum, subject_.rate, 0.9, 1), 0,
                   plan_.arena_elements);
}

void SteppedResNet::copy_state(const SteppedResNet& other) {
  for (std::size_t i = 0; i < other.plan_.parameters.size(); ++i) {
    program_->write_parameter(index_in(plan_.parameters, other.plan_.parameters[i].name),
                              other.program_->read_parameter(static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < other.plan_.statistics.size(); ++i) {
    program_->write_statistic(index_in(plan_.statistics, other.plan_.statistics[i].name),
                              other.program_->read_statistic(static_cast<int>(i)));
  }
}

std::vector<double> SteppedResNet::gradient(const std::string& name) const {
  return program_->read_gradient(index_in(plan_.parameters, name));
}

std::vector<double> SteppedResNet::statistic(const std::string& name) const {
  return program_->read_statistic(index_in(plan_.statistics, name));
}

bool SteppedResNet::is_cancelled_bias(const std::string& name) const {
  const int index = index_in(plan_.parameters, name);
  return std::any_of(plan_.operations.begin(), plan_.operations.end(),
                     [&](const Operation& op) { return op.bias_cancels && op.bias == index; });
}

}  // namespace paceline::parity
