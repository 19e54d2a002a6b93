#include "engine/device/cpu/parallel.h"

#include <omp.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "engine/core/error.h"

namespace paceline::cpu {

Parallel::Parallel(int threads, const std::vector<int>& cpus) : threads_(threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::vector<int> failed(static_cast<std::size_t>(threads), 0);
#pragma omp parallel num_threads(threads)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    if (thread < cpus.size()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cpus[thread]), &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0) failed[thread] = errno;
    }
  }
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) {
      throw Error(ErrorKind::usage,
                  "a thread cannot be bound to CPU " + std::to_string(cpus[i]) + ": " +
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
