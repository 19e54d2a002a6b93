#include "engine/core/binding.h"

#include <sched.h>

#include <cstddef>

namespace paceline {

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace paceline
