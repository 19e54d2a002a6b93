// Cryptographic checksums, to compare with published ones. Only builds that can download have them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace paceline {

// Digest of a file's content as lower-case hexadecimal digits. `algorithm` is "sha256" or "md5".
// Calls `progress` with the bytes read so far. Throws input if the file cannot be read.
std::string file_digest(
    const std::filesystem::path& file, const std::string& algorithm,
    const std::function<void(double)>& progress = [](double) {});

}  // namespace paceline
