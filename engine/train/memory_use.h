// The memory that training takes.
#pragma once

#include <cstddef>
#include <string>

#include "engine/device/update.h"
#include "engine/facts/training.h"
#include "engine/plan/plan.h"

namespace paceline {

// Peak bytes of one replica. Everything is allocated before the first step.
struct MemoryUse {
  std::size_t activations = 0;  // including their gradients
  std::size_t parameters = 0;
  std::size_t gradients = 0;
  std::size_t moments = 0;  // of the optimizer
  std::size_t statistics = 0;
  std::size_t scratch = 0;     // of the device's libraries
  std::size_t checkpoint = 0;  // on the host: rank 0's copy of the state while it is written
  std::size_t state() const { return parameters + moments + statistics; }
  std::size_t total() const { return activations + gradients + state() + scratch + checkpoint; }
  std::string text() const;  // "2.3 GiB: activations 2.0 GiB, parameters 98 MiB, ..."
  MemoryFacts facts() const;
};

MemoryUse memory_use(const Plan& plan, Optimizer optimizer, std::size_t scratch_bytes);

}  // namespace paceline
