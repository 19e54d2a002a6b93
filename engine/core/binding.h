#pragma once

#include <string>
#include <vector>

namespace paceline {

// Binds the calling thread to one CPU. Does nothing if that is not permitted.
void bind_to(int cpu);

// Binds it to several CPUs. Does nothing for an empty list.
void bind_to_cpus(const std::vector<int>& cpus);

// Names the calling thread for top, gdb and perf. Only the first 15 bytes count.
void name_this_thread(const std::string& name);

}  // namespace paceline
