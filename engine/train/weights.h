// Initial values of parameters, as Keras has them: kernels uniform on +-sqrt(6 / (fan_in +
// fan_out)) (Glorot and Bengio, AISTATS 2010), biases zero, gamma of a batch_norm 1.
#pragma once

#include <cstdint>

#include "engine/device/device.h"

namespace paceline {

// The same on every rank: a pure function of the seed and the parameter's name.
void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed);

// XXH3 over all canonical values rounded to fp32, in the order of names. Running averages are not
// in it: they differ by replica.
std::uint64_t parameter_checksum(const Program& program, const Plan& plan);

}  // namespace paceline
