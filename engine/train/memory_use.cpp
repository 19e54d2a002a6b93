#include "engine/train/memory_use.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace paceline {

std::string MemoryUse::text() const {
  const auto bytes = [](std::size_t count) { return format_bytes(static_cast<double>(count)); };
  return fmt::format(
      "{}: activations {}, parameters {}, gradients {}, moments {}, statistics {}, scratch {}",
      bytes(total()), bytes(activations), bytes(parameters), bytes(gradients), bytes(moments),
      bytes(statistics), bytes(scratch));
}

MemoryUse memory_use(const Plan& plan, Optimizer optimizer, std::size_t scratch_bytes) {
  const std::size_t arena = plan.arena_elements * size_of(plan.real);
  return {.activations = plan.activation_bytes,
          .parameters = arena,
          .gradients = arena,
          .moments = arena * static_cast<std::size_t>(state_arenas(optimizer)),
          .statistics = plan.statistics_elements * size_of(plan.real),
          .scratch = scratch_bytes};
}

}  // namespace paceline
