// How much memory this process could still have.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace paceline {

// What the kernel calls available, the file cache that it would give up included, and no more than
// the control groups above this process (a job's limit) leave. Nothing where neither is known.
std::optional<std::size_t> available_memory();

// The same where /proc and /sys/fs/cgroup are these folders, for tests.
std::optional<std::size_t> available_memory(const std::filesystem::path& proc,
                                            const std::filesystem::path& cgroups);

}  // namespace paceline
