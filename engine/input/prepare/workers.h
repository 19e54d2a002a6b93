// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace paceline {

// Calls work(i) once for every i below `count`, on `threads` threads of which the caller is one.
// The first exception stops the others at their next piece and is thrown again here.
void work_on(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace paceline
