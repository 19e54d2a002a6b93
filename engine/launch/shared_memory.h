// Checks the free shared memory of the node. Files behind shared windows are sparse: without this
// check, a full /dev/shm causes SIGBUS at the first access to a page.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/launch/process_rank.h"

namespace paceline {

// Where MPI creates the files of its shared windows: OMPI_MCA_osc_sm_backing_directory if set, else
// /dev/shm.
std::filesystem::path shared_memory_folder(const Environment& environment);

// Free bytes in the folder; -1: unknown.
std::int64_t free_bytes(const std::filesystem::path& folder);

// Throws usage with a cure if `wanted` bytes are more than `free` (-1: no check).
void check_room(std::int64_t wanted, std::int64_t free, const std::filesystem::path& folder);

}  // namespace paceline
