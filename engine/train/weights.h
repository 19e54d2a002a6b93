// Initial values of parameters, as Keras has them: kernels uniform on +-sqrt(6 / (fan_in +
// fan_out)) (Glorot and Bengio, AISTATS 2010), biases zero, gamma of a batch_norm 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/device/device.h"

namespace paceline {

// The same on every rank: a pure function of the seed and the parameter's name.
void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed);

// XXH3 over all canonical values rounded to fp32, in the order of names. Running averages are not
// in it: they differ by replica.
std::uint64_t parameter_checksum(const Program& program, const Plan& plan);

// What is wrong with the first parameter or running average of this replica that holds NaN or an
// infinity: "dense/kernel holds 12 values that are not numbers (NaN or infinite)". Empty: none.
std::string find_not_finite(const Program& program, const Plan& plan);

// The same of one tensor's values.
std::string not_finite(const std::string& name, std::span<const double> values);

}  // namespace paceline
