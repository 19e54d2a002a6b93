// Whether files lie in memory already: the first epoch of a run is cold or warm.
#pragma once

#include <filesystem>
#include <optional>

namespace paceline {

// The share of places, sampled evenly over the files below `folder`, that the system has in its
// page cache. Nothing where its file system does not tell, or without files. Reads no more than it
// finds there. Call it before anything else reads the files.
std::optional<double> resident_share(const std::filesystem::path& folder);

}  // namespace paceline
