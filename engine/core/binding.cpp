#include "engine/core/binding.h"

#include <pthread.h>
#include <sched.h>

#include <cstddef>

namespace paceline {

void bind_to(int cpu) {
  bind_to_cpus({cpu});
}

void bind_to_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void name_this_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace paceline
