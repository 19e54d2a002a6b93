// Times a device's arithmetic and its memory for Device::probe().
#pragma once

#include <cstddef>
#include <functional>

#include "engine/device/device.h"

namespace paceline {

// `multiply_add(rounds)` does work on all of the replica's threads and returns its floating-point
// operations; `copy(to, from, bytes)` copies with all threads. The best of three is taken.
Probe timed_probe(const std::function<double(std::size_t rounds)>& multiply_add,
                  const std::function<void(std::byte*, const std::byte*, std::size_t)>& copy);

}  // namespace paceline
