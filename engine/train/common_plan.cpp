#include "engine/train/common_plan.h"

#include "engine/comm/checks/config_check.h"
#include "engine/core/hash.h"

namespace paceline {

namespace {

std::string hash_of_operations(const Plan& plan) {
  Hash hash;
  for (const Operation& op : plan.operations) {
    hash.add(op.name).add(" ").add(op.text()).add(" ").add(op.in.text()).add(op.out.text());
    const int numbers[] = {op.from, op.from2, op.weight, op.bias, op.kernel, op.stride, op.padding};
    hash.add(numbers, sizeof numbers);
  }
  return hash.hex();
}

std::string hash_of_parameters(const Plan& plan) {
  Hash hash;
  for (const ParameterInfo& info : plan.parameters) {
    hash.add(info.name).add(info.shape.data(), info.shape.size() * sizeof(int));
    hash.add(&info.offset, sizeof info.offset);
  }
  return hash.hex();
}

}  // namespace

void check_common_plan(Communicator& communicator, const Plan& plan, const Device& device) {
  if (communicator.size() == 1) return;
  check_same_config(communicator,
                    {{"plan of", plan.network},
                     {"samples of a step", std::to_string(plan.batch)},
                     {"sample", plan.sample.text()},
                     {"operations", hash_of_operations(plan)},
                     {"parameters", hash_of_parameters(plan)},
                     {"parameter arena", std::to_string(plan.arena_elements) + " elements"},
                     {"device", std::string(device.name())},
                     {"device libraries", device.libraries()}});
}

}  // namespace paceline
