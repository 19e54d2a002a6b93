// One replica of a workload stepped by hand: fixed weights, fixed batches, gradients to look at.
#pragma once

#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/dataset.h"
#include "workloads/workload.h"

namespace paceline::parity {

class Locked {
 public:
  // Rank `rank` of `ranks` that share a global batch of 64; weights as make_parity.py has them.
  Locked(const std::string& workload, const std::string& device, const DatasetPair& data, int batch,
         int rank = 0, int ranks = 1);
  // The same with the workload's network changed.
  Locked(Workload workload, const std::string& device, const DatasetPair& data, int batch,
         int rank = 0, int ranks = 1);

  // Forward and backward on step `step`'s batch; sums gradients over `communicator` if given.
  // Returns this rank's part of the global batch's mean loss.
  double gradient_step(std::size_t step, Communicator* communicator = nullptr);
  // The same, then Adam at 0.001. Steps must be taken in order.
  double step(std::size_t step);

  void copy_weights(const Locked& other);
  const Plan& plan() const { return plan_; }
  int parameter_index(const std::string& parameter) const;
  const Program& program() const { return *program_; }

 private:
  Batch make_batch(std::size_t step);
  void set_weights();

  Workload workload_;
  const DatasetPair& data_;
  int rank_, ranks_;
  std::unique_ptr<Device> device_;
  Plan plan_;
  Memory gradients_;
  std::unique_ptr<Program> program_;
  std::vector<std::uint32_t> positions_;
};

// norm(gradient - expected) / norm(expected)
double gradient_error(const Locked& tested, const Locked& expected, const std::string& parameter);

}  // namespace paceline::parity
