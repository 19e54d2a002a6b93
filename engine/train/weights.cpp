#include "engine/train/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/core/hash.h"
#include "engine/core/random.h"

namespace paceline {

void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed) {
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const ParameterInfo& info = plan.parameters[i];
    std::vector<double> values(info.elements, info.initial);
    if (info.fan_in > 0) {
      const double limit = std::sqrt(6.0 / (info.fan_in + info.fan_out));
      RandomSequence random(seed, Stream::weights,
                            static_cast<std::uint32_t>(hash_value(info.name)));
      for (double& value : values) value = (2 * random.uniform() - 1) * limit;
    }
    program.write_parameter(static_cast<int>(i), values);
  }
}

std::uint64_t parameter_checksum(const Program& program, const Plan& plan) {
  std::vector<std::size_t> order(plan.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.parameters[a].name < plan.parameters[b].name;
  });
  Hash hash;
  for (const std::size_t index : order) {
    const std::vector<double> values = program.read_parameter(static_cast<int>(index));
    const std::vector<float> rounded(values.begin(), values.end());
    hash.add(rounded.data(), rounded.size() * sizeof(float));
  }
  return hash.value();
}

std::string not_finite(const std::string& name, std::span<const double> values) {
  const auto count = std::count_if(values.begin(), values.end(),
                                   [](double value) { return !std::isfinite(value); });
  if (count == 0) return "";
  return fmt::format("{} holds {} value{} not {} (NaN or infinite)", name, count,
                     count == 1 ? " that is" : "s that are", count == 1 ? "a number" : "numbers");
}

std::string find_not_finite(const Program& program, const Plan& plan) {
  for (const auto* arrays : {&plan.parameters, &plan.statistics}) {
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      const int index = static_cast<int>(i);
      const std::vector<double> values = arrays == &plan.parameters ? program.read_parameter(index)
                                                                    : program.read_statistic(index);
      std::string found = not_finite((*arrays)[i].name, values);
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace paceline
