// Whether the node's shared memory has room for a window. The file behind a window is sparse:
// without this check, a full /dev/shm shows as SIGBUS at the first touch of a page.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/launch/process_rank.h"

namespace paceline {

// Where MPI puts the files behind its shared windows: OMPI_MCA_osc_sm_backing_directory, if set,
// else /dev/shm.
std::filesystem::path shared_memory_folder(const Environment& environment);

// Bytes that can still be written there; -1 where that is unknown.
std::int64_t free_bytes(const std::filesystem::path& folder);

// Throws usage with the cure where `wanted` bytes are more than `free` (-1: passes).
void check_room(std::int64_t wanted, std::int64_t free, const std::filesystem::path& folder);

}  // namespace paceline
