// Whether files are in memory already, i.e. whether the first epoch is cold or warm.
#pragma once

#include <filesystem>
#include <optional>

namespace paceline {

// The share of evenly sampled positions in the files of `folder` that are in the page cache. Empty
// if the file system does not report it, or without files. Reads only cached pages. Call it before
// anything else reads the files.
std::optional<double> resident_share(const std::filesystem::path& folder);

}  // namespace paceline
