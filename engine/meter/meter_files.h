// Small files of one value, as sysfs has them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

std::string first_line(const std::filesystem::path& file);  // trimmed; empty if it cannot be read
// The number that a line begins with.
std::optional<double> leading_number(const std::string& line);
bool can_read(const std::filesystem::path& file);
// Sorted. None if there is no such folder.
std::vector<std::filesystem::path> list_entries(const std::filesystem::path& folder,
                                                std::string_view beginning);
// Reads the file's number, times `scale`.
std::function<std::optional<double>()> make_reader(const std::filesystem::path& file, double scale);

}  // namespace paceline
