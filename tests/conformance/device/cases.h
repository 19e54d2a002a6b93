// Networks that together cover every operation, and a replica to run them by hand.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/device/device.h"

namespace paceline::conformance {

struct NetworkCase {
  std::string name;
  Network network;
};

inline void PrintTo(const NetworkCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<NetworkCase> network_cases();

// The row of device_table() with this name; throws if there is none.
std::unique_ptr<Device> make_device(const std::string& name, int threads = 1);

bool is_gpu(const std::string& device);
// Why a device of GPUs cannot be tested here; empty: it can, or is none.
std::string reason_absent(const std::string& device);

// Random samples with labels and positions, owned.
class RandomBatch {
 public:
  RandomBatch(const Network& network, int samples, int global_samples, std::uint32_t seed);
  const Batch& batch() const& { return batch_; }
  const Batch& batch() const&& = delete;  // it points into this

 private:
  std::vector<std::uint8_t> images_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> positions_;
  Batch batch_;
};

// One replica of a network on a device. Parameters have random values, by their names.
class Replica {
 public:
  Replica(std::unique_ptr<Device> device, const Network& network, int batch, bool fuse);

  // Forward in train mode; the mean loss over the labels of the global batch.
  double loss(const Batch& batch);
  // Backward of everything, into a gradient arena filled with NaN before.
  void backward();
  void poison_gradients();

  const Plan& plan() const { return plan_; }
  Program& program() { return *program_; }
  int parameter_index(const std::string& parameter) const;
  int statistic_index(const std::string& name) const;
  std::vector<double> gradient(const std::string& parameter) const {
    return program_->read_gradient(parameter_index(parameter));
  }
  std::vector<double> parameter(const std::string& name) const {
    return program_->read_parameter(parameter_index(name));
  }
  std::vector<double> statistic(const std::string& name) const {
    return program_->read_statistic(statistic_index(name));
  }
  void write(const std::string& parameter, const std::vector<double>& values) {
    program_->write_parameter(parameter_index(parameter), values);
  }
  // Its gradient is zero but for rounding: Operation::bias_cancels.
  bool is_cancelled_bias(int parameter) const;

 private:
  bool is_tied(int parameter) const;
  void poison(bool tied);

  std::unique_ptr<Device> device_;
  Plan plan_;
  Memory gradients_;
  std::unique_ptr<Program> program_;
};

// norm(a - b) / norm(b); 0 where both are zero.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);
double compute_norm(const std::vector<double>& values);

}  // namespace paceline::conformance
