// Work that may break the process that does it (a library that trusts a file too much) is tried in
// a child first.
#pragma once

#include <functional>
#include <string>

namespace paceline {

// Does `work` in a forked child and throws what it throws. Throws input, naming `what` did it
// ("HDF5") and `where`, if the child dies of it or does not come to an end within `seconds`.
// Nothing else of the work is seen. Call while this process has one thread only: of others the
// child has none, but the locks that they hold.
void run_isolated(const std::function<void()>& work, double seconds, const std::string& what,
                  const std::string& where);

}  // namespace paceline
