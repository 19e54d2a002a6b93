// Measures arithmetic and memory speed for Device::probe().
#pragma once

#include <cstddef>
#include <functional>

#include "engine/device/device.h"

namespace paceline {

// `multiply_add(rounds)` computes on all of the replica's threads and returns its number of
// floating-point operations. `copy(to, from, bytes)` copies with all threads. Uses the best of
// three runs.
Probe timed_probe(const std::function<double(std::size_t rounds)>& multiply_add,
                  const std::function<void(std::byte*, const std::byte*, std::size_t)>& copy);

}  // namespace paceline
