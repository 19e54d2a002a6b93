// Runs independent tasks on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace paceline {

// Calls work(i) once for each i below `count`, on `threads` threads including the caller. After the
// first exception, the threads stop at their next task and the exception is rethrown.
void work_on(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace paceline
