// Unpacks downloaded archives (.tar.gz, .zip).
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

// Extracts regular files and folders only. Throws input naming archive and entry: a path outside of
// `folder`, a link or device, a duplicate name, more than `most_bytes` in total, a damaged archive,
// a full disk.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            std::uint64_t most_bytes, bool quiet);

}  // namespace paceline
