// Archives from elsewhere (.tar.gz, .zip) to a folder.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

// Regular files and folders only. Throws input, naming archive and entry, for a path that leads out
// of `folder`, a link or device, a name that comes twice, more than `most_bytes` in all, a damaged
// archive, a full disk.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            std::uint64_t most_bytes, bool quiet);

}  // namespace paceline
