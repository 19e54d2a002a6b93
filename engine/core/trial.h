// Runs work that may crash the process (e.g. a library that trusts its input) in a child process
// first.
#pragma once

#include <functional>
#include <string>

namespace paceline {

// Runs `work` in a forked child and rethrows its errors. Throws input, naming `what` did the work
// ("HDF5") and `where`, if the child crashes or takes longer than `seconds`. All other effects of
// `work` are lost. Call it while this process has a single thread: the child would inherit locks
// held by other threads.
void run_isolated(const std::function<void()>& work, double seconds, const std::string& what,
                  const std::string& where);

}  // namespace paceline
