#include "engine/train/memory_use.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace paceline {

std::string MemoryUse::text() const {
  const auto bytes = [](std::size_t count) { return format_bytes(static_cast<double>(count)); };
  std::string text = fmt::format("{}: activations {}, parameters {}, gradients {}", bytes(total()),
                                 bytes(activations), bytes(parameters), bytes(gradients));
  if (moments > 0) text += ", moments " + bytes(moments);
  if (statistics > 0) text += ", statistics " + bytes(statistics);
  if (scratch > 0) text += ", scratch " + bytes(scratch);
  if (checkpoint > 0) text += ", copy for checkpoints " + bytes(checkpoint);
  return text;
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

MemoryFacts MemoryUse::facts() const {
  return {.activations = activations,
          .parameters_gradients_state = parameters + gradients + moments,
          .statistics = statistics,
          .scratch = scratch,
          .total = total()};
}

}  // namespace paceline
