#include "engine/device/device.h"

#include <algorithm>
#include <string>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/update.h"

namespace paceline {

ProbeFacts timed_probe(const std::function<double(std::size_t)>& multiply_add,
                       const std::function<void(std::byte*, const std::byte*, std::size_t)>& copy) {
  constexpr std::size_t kRounds = 200000, kBytes = std::size_t{32} << 20;
  const Memory from = host_memory(kBytes), to = host_memory(kBytes);
  ProbeFacts probe;
  for (int repeat = 0; repeat < 3; ++repeat) {
    double start = now_seconds();
    const double operations = multiply_add(kRounds);
    probe.flops_per_second =
        std::max(probe.flops_per_second.value_or(0), operations / (now_seconds() - start));
    start = now_seconds();
    copy(to.data(), from.data(), kBytes);
    probe.bytes_per_second = std::max(probe.bytes_per_second.value_or(0),
                                      static_cast<double>(kBytes) / (now_seconds() - start));
  }
  return probe;
}

namespace {

constexpr EnumName<Optimizer> kOptimizerNames[] = {{Optimizer::sgd, "sgd"},
                                                   {Optimizer::momentum, "momentum"},
                                                   {Optimizer::adagrad, "adagrad"},
                                                   {Optimizer::adam, "adam"}};

}  // namespace

Optimizer parse_optimizer(std::string_view name) {
  if (const auto found = value_in(kOptimizerNames, name)) return *found;
  throw usage_error("unknown optimizer \"" + std::string(name) + "\"", "",
                    "known: sgd, momentum, adagrad, adam");
}

const char* to_string(Optimizer optimizer) {
  return name_in(kOptimizerNames, optimizer);
}

int state_arenas(Optimizer optimizer) {
  return optimizer == Optimizer::sgd ? 0 : optimizer == Optimizer::adam ? 2 : 1;
}

double initial_state(Optimizer optimizer) {
  return optimizer == Optimizer::adagrad ? 0.1 : 0;
}

UpdateRule update_rule(Optimizer optimizer, double rate, double momentum, long step, double beta2) {
  UpdateRule rule{.optimizer = optimizer, .rate = rate, .momentum = momentum, .beta2 = beta2};
  if (optimizer == Optimizer::adam) {
    rule.step = step;
    rule.rate *= bias_correction(rule, step);
  }
  return rule;
}

}  // namespace paceline
