#include "engine/train/weights.h"

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

}  // namespace paceline
