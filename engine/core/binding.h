#pragma once

#include <string>
#include <vector>

namespace paceline {

// Binds the calling thread to one CPU. Where that is not allowed it runs anywhere, only slower.
void bind_to(int cpu);

// To any of these; none: it stays where it is.
void bind_to_any_of(const std::vector<int>& cpus);

// What top, gdb and perf call the calling thread: the first 15 bytes of `name`.
void name_this_thread(const std::string& name);

}  // namespace paceline
