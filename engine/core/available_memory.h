// How much more memory this process can allocate.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace paceline {

// The kernel's MemAvailable, which includes reclaimable file cache, limited by the control groups
// of this process (e.g. a job's limit). Empty if neither is known.
std::optional<std::size_t> available_memory();

// The same with other roots for /proc and /sys/fs/cgroup, for tests.
std::optional<std::size_t> available_memory(const std::filesystem::path& proc,
                                            const std::filesystem::path& cgroups);

}  // namespace paceline
