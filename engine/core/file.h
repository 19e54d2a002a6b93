// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace paceline {

// Writes to a temporary name beside `file`, syncs, and renames over `file`.
void replace_file(const std::filesystem::path& file, std::string_view content);

// As above, but gives the name by a link that fails if it exists. False: somebody was first, and
// nothing was changed.
bool create_file(const std::filesystem::path& file, std::string_view content);

// Creates the folder and its parents, or throws input saying which part could not be made.
void make_folder(const std::filesystem::path& folder);

}  // namespace paceline
