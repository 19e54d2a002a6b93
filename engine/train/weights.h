// Initial values of parameters, as in Keras: kernels uniform on +-sqrt(6 / (fan_in + fan_out))
// (Glorot and Bengio, AISTATS 2010), biases 0, gamma of batch_norm 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/device/device.h"

namespace paceline {

// Equal on all ranks: a pure function of the seed and the parameter's name.
void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed);

// XXH3 over all canonical values rounded to fp32, in the order of names. Excludes running averages,
// which differ between replicas.
std::uint64_t parameter_checksum(const Program& program, const Plan& plan);

// Describes the first parameter or running average of this replica with NaN or infinite values:
// "dense/kernel holds 12 values that are not numbers (NaN or infinite)". Empty if there are none.
std::string find_not_finite(const Program& program, const Plan& plan);

// The same for one tensor's values.
std::string not_finite(const std::string& name, std::span<const double> values);

}  // namespace paceline
