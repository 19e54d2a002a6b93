// GPTs in locked steps against the losses that PyTorch gives in float64 (make_gpt_parity.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/core/json.h"
#include "tests/integration/made.h"
#include "workloads/workload.h"

namespace paceline::parity {
namespace {

// `replicas` programs on one device, whose gradients are summed by hand.
class SteppedGpt {
 public:
  SteppedGpt(const Json& subject, const std::string& device, const std::string& precision,
             int replicas)
      : device_(make_device(device, precision)),
        batch_(subject.at("batch").get<int>() / replicas),
        plan_(make_plan(make_network(subject.at("shape")), batch_, device_->precision(),
                        [this](const Operation& op) { return device_->supports(op); })) {
    for (int r = 0; r < replicas; ++r) {
      gradients_.push_back(device_->allocate(plan_.arena_elements * size_of(plan_.real)));
      programs_.push_back(device_->compile(plan_, gradients_.back().data()));
      set_weights(*programs_.back());
    }
  }

  // The loss before the update.
  double step(long number) {
    const auto elements = plan_.sample.elements() * static_cast<std::size_t>(batch_);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch_));
    const std::vector<std::uint32_t> positions(labels.size());
    std::vector<std::uint8_t> tokens(elements);
    double loss = 0;
    for (std::size_t r = 0; r < programs_.size(); ++r) {
      for (std::size_t i = 0; i < elements / 2; ++i) {
        const std::uint32_t token =
            random_bits(r * elements / 2 + i, 7000 + static_cast<std::uint64_t>(number) % 4) %
            static_cast<std::uint32_t>(plan_.classes);
        tokens[2 * i] = static_cast<std::uint8_t>(token);
        tokens[2 * i + 1] = static_cast<std::uint8_t>(token >> 8);
      }
      Batch batch;
      batch.images = tokens.data();
      batch.labels = labels.data();
      batch.positions = positions.data();
      batch.samples = batch_;
      batch.global_samples = batch_ * static_cast<int>(programs_.size());
      programs_[r]->forward(batch, Mode::train);
      programs_[r]->backward(static_cast<int>(plan_.operations.size()) - 1, 0);
      loss += programs_[r]->take_sums().loss / batch.global_samples / plan_.labels_per_sample;
    }
    sum_gradients();
    UpdateRule rule = update_rule(Optimizer::adam, 0.001, 0, number + 1);
    rule.decay = 0.001 * 0.1;
    rule.clip_norm = 1;
    for (const auto& program : programs_) {
      program->measure_gradients(rule);
      program->update(rule, 0, plan_.arena_elements);
      program->take_sums();
    }
    return loss;
  }

 private:
  static Network make_network(const Json& shape) {
    const GptShape gpt{shape[0], shape[1], shape[2], shape[3], shape[4]};
    return gpt_workload("gpt", "", gpt, "").network;
  }

  // Arrays are numbered in the order of the network's layers.
  void set_weights(Program& program) {
    std::uint64_t index = 0;
    const auto set = [&](const std::string& name) {
      for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
        const ParameterInfo& info = plan_.parameters[i];
        if (info.name != name) continue;
        std::vector<double> values(info.elements);
        for (std::size_t e = 0; e < values.size(); ++e) {
          values[e] = static_cast<float>((2 * (random_bits(e, index) / 4294967296.0) - 1) * 0.04 +
                                         info.initial);
        }
        program.write_parameter(static_cast<int>(i), values);
        ++index;
        return;
      }
      throw std::runtime_error("no array " + name);
    };
    for (const Operation& op : plan_.operations) {
      if (op.weight == kNone || op.tied != kNone) continue;
      for (const int parameter : {op.weight, op.bias}) {
        set(plan_.parameters[static_cast<std::size_t>(parameter)].name);
      }
    }
  }

  void sum_gradients() {
    for (std::size_t i = 0; programs_.size() > 1 && i < plan_.parameters.size(); ++i) {
      const int index = static_cast<int>(i);
      std::vector<double> sum = programs_[0]->read_gradient(index);
      for (std::size_t r = 1; r < programs_.size(); ++r) {
        const std::vector<double> other = programs_[r]->read_gradient(index);
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += other[e];
      }
      for (const auto& program : programs_) program->write_gradient(index, sum);
    }
  }

  std::unique_ptr<Device> device_;
  int batch_;
  Plan plan_;
  std::vector<Memory> gradients_;
  std::vector<std::unique_ptr<Program>> programs_;
};

struct Case {
  const char* subject;
  const char *device, *precision;
  int replicas;
  std::size_t steps;
  double bound;  // relative, of the loss
};

void follow_losses(const Case& one) {
  SCOPED_TRACE(std::string(one.subject) + " on " + one.device);
  const JsonDocument document =
      read_json(std::string(PACELINE_SOURCE_DIR) + "/tests/integration/parity/gpt_parity.json");
  const Json& subject = document.value().at(one.subject);
  SteppedGpt gpt(subject, one.device, one.precision, one.replicas);
  for (std::size_t step = 0; step < one.steps; ++step) {
    const double expected = subject.at("losses")[step];
    EXPECT_NEAR(gpt.step(static_cast<long>(step)), expected, one.bound * expected)
        << "step " << step;
  }
}

TEST(GptParity, TheReferenceRepeatsPyTorch) {
  for (const int replicas : {1, 2}) {
    follow_losses({"small", "reference", "fp64", replicas, 20, 1e-6});
  }
}

TEST(GptParity, TheCpuFollowsPyTorch) {
  if (find_factory(device_table(), "cpu") == nullptr) GTEST_SKIP() << "no cpu device in this build";
  for (const int replicas : {1, 2}) {
    follow_losses({"small", "cpu", "fp32", replicas, 20, 1e-4});
    follow_losses({"gpt-tiny", "cpu", "fp32", replicas, 20, 1e-4});
  }
}

// Minutes: naive loops, and 124 million parameters.
TEST(GptParity, DISABLED_TheReferenceRepeatsPyTorchOnTheWholeNetworks) {
  for (const int replicas : {1, 2}) {
    follow_losses({"gpt-tiny", "reference", "fp64", replicas, 20, 1e-6});
  }
  follow_losses({"gpt2-124m", "reference", "fp64", 1, 20, 1e-6});
}

TEST(GptParity, DISABLED_TheCpuFollowsPyTorchOnGpt2) {
  follow_losses({"gpt2-124m", "cpu", "fp32", 1, 20, 1e-4});
}

}  // namespace
}  // namespace paceline::parity
