// The folder of a report: written whole, file by file, and never over what is no report's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

// Throws usage naming the file where one of `names` is there already and the folder holds no report
// of ours (a report.json or collectives.json that says so), and where one is a folder.
void check_report_folder(const std::filesystem::path& folder,
                         const std::vector<std::string>& names);

}  // namespace paceline
