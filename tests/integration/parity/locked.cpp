#include "tests/integration/parity/locked.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tests/integration/made.h"
#include "workloads/workload.h"

namespace paceline::parity {

namespace {

constexpr std::size_t kGlobalBatch = 64;
constexpr std::uint64_t kSeed = 7;

}  // namespace

Locked::Locked(const std::string& workload, const std::string& device, const DatasetPair& data,
               int batch, int rank, int ranks)
    : Locked(find_maker(workload_table(), workload)(), device, data, batch, rank, ranks) {}

Locked::Locked(Workload workload, const std::string& device, const DatasetPair& data, int batch,
               int rank, int ranks)
    : workload_(std::move(workload)),
      data_(data),
      rank_(rank),
      ranks_(ranks),
      device_(make_device(device, device == "reference" ? "fp64" : "fp32")),
      plan_(make_plan(workload_.network, batch, device_->precision(),
                      [this](const Operation& op) { return device_->supports(op); })),
      gradients_(device_->allocate(plan_.arena_elements * size_of(plan_.real))),
      program_(device_->compile(plan_, gradients_.data())),
      positions_(kGlobalBatch) {
  std::iota(positions_.begin(), positions_.end(), 0U);
  set_weights();
}

// Kernels in the order of layers, as make_parity.py numbers them.
void Locked::set_weights() {
  std::uint64_t kernel = 0;
  for (const Operation& op : plan_.operations) {
    if (op.weight == kNone) continue;
    const ParameterInfo& info = plan_.parameters[static_cast<std::size_t>(op.weight)];
    const double limit = std::sqrt(6.0 / (info.fan_in + info.fan_out));
    std::vector<double> values(info.elements);
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = (i * 2654435761U + 40503 * (kernel + 1)) & 0xffffffff;
      values[i] = (2 * static_cast<double>(bits) / 4294967296.0 - 1) * limit;
    }
    program_->write_parameter(op.weight, values);
    ++kernel;
  }
}

Batch Locked::make_batch(std::size_t step) {
  const std::size_t share = kGlobalBatch / static_cast<std::size_t>(ranks_);
  const std::size_t first = share * static_cast<std::size_t>(rank_);
  const std::size_t sample = step * kGlobalBatch + first;
  Batch batch;
  batch.images = data_.train.images.data() + sample * data_.train.sample_bytes();
  batch.labels = data_.train.labels.data() + sample;
  batch.positions = positions_.data() + first;
  batch.samples = static_cast<int>(share);
  batch.global_samples = static_cast<int>(kGlobalBatch);
  batch.epoch = static_cast<std::uint32_t>(step);
  batch.dropout_key = philox_key(kSeed, Stream::dropout);
  return batch;
}

double Locked::gradient_step(std::size_t step, Communicator* communicator) {
  program_->take_sums();
  program_->forward(make_batch(step), Mode::train);
  program_->backward(static_cast<int>(plan_.operations.size()) - 1, 0);
  if (communicator) {
    communicator->all_reduce(program_->gradients(), plan_.arena_elements, plan_.real,
                             device_->comm_lane(), "gradients");
    device_->comm_lane().drain();
  }
  return program_->take_sums().loss / static_cast<double>(kGlobalBatch);
}

double Locked::step(std::size_t step) {
  const double loss = gradient_step(step);
  program_->update(update_rule(Optimizer::adam, 0.001, 0, static_cast<long>(step) + 1), 0,
                   plan_.arena_elements);
  return loss;
}

int Locked::parameter_index(const std::string& parameter) const {
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    if (plan_.parameters[i].name == parameter) return static_cast<int>(i);
  }
  throw std::runtime_error("no parameter " + parameter);
}

void Locked::copy_weights(const Locked& other) {
  for (const ParameterInfo& info : other.plan().parameters) {
    program_->write_parameter(parameter_index(info.name),
                              other.program().read_parameter(other.parameter_index(info.name)));
  }
}

double gradient_error(const Locked& tested, const Locked& expected, const std::string& parameter) {
  const auto a = tested.program().read_gradient(tested.parameter_index(parameter));
  const auto b = expected.program().read_gradient(expected.parameter_index(parameter));
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace paceline::parity
