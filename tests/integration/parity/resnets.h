// ResNets stepped by hand, with the weights and batches that make_resnet_parity.py has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/device/device.h"

namespace paceline::parity {

struct Subject {
  std::string name;
  Network network;
  int batch;
  double rate;
};
Subject small_resnet();
// Residual branches begin with a small gamma: with gammas around one a deep network of random
// weights multiplies rounding errors by a million.
Subject resnet50_of_64();

class SteppedResNet {
 public:
  SteppedResNet(const Subject& subject, const std::string& device, const std::string& precision);

  // Forward and backward on step `step`'s batch; returns its mean loss.
  double gradient_step(std::size_t step);
  // w += a, a = 0.9 a - rate gradient.
  void update();
  // Parameters and running averages.
  void copy_state(const SteppedResNet& other);

  const Plan& plan() const { return plan_; }
  std::vector<double> gradient(const std::string& name) const;
  std::vector<double> statistic(const std::string& name) const;
  bool is_cancelled_bias(const std::string& name) const;

 private:
  void set_weights();
  void set(int parameter, std::uint64_t stream, double limit, double middle);

  Subject subject_;
  std::unique_ptr<Device> device_;
  Plan plan_;
  Memory gradients_;
  std::unique_ptr<Program> program_;
  std::vector<std::uint8_t> images_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace paceline::parity
