#include "engine/device/cpu/parallel.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "engine/core/error.h"

namespace paceline::cpu {

// Half of the last cache, but not more than a thread gets of the largest ones: a virtual machine
// shows the cache of its whole host (480 MiB beside two CPUs). A system that does not say has some.
std::size_t Parallel::kept_in_cache(int threads) {
  constexpr std::size_t kOfThread = std::size_t{8} << 20;
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t most = kOfThread * static_cast<std::size_t>(threads);
  return bytes > 0 ? std::min(static_cast<std::size_t>(bytes) / 2, most) : most;
}

Parallel::Parallel(int threads, const std::vector<int>& cpus, std::size_t kept_bytes)
    : threads_(threads), kept_bytes_(kept_bytes) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::vector<int> failed(static_cast<std::size_t>(threads), 0);
  int team = 0;
#pragma omp parallel num_threads(threads)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    if (thread == 0) team = omp_get_num_threads();
    if (thread < cpus.size()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cpus[thread]), &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0) failed[thread] = errno;
    }
  }
  if (team < threads) {  // the share of each missing thread would stay undone
    throw usage_error("OpenMP starts only " + std::to_string(team) + " of " +
                          std::to_string(threads) + " compute threads",
                      "", "unset the variable that limits its threads, or use fewer");
  }
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) {
      throw usage_error("a thread cannot be bound to CPU " + std::to_string(cpus[i]) + ": " +
                            std::strerror(failed[i]),
                        "", "check the CPU mask that the launcher gave (paceline doctor)");
    }
  }
}

void Parallel::run(void (*body)(void*, int), void* context) const {
#pragma omp parallel num_threads(threads_)
  body(context, omp_get_thread_num());
}

}  // namespace paceline::cpu
