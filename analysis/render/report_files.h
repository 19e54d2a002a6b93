// The folder of a report: written whole, file by file, and never over what is no report's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/output_file.h"

namespace paceline {

// A file of the report in `folder`. It replaces another where the folder holds a report of ours: a
// report.json or collectives.json that says so.
OutputFile report_file(const std::filesystem::path& folder, const std::string& name);

// Throws input naming the file that is there already and is no report's.
void check_report_folder(const std::filesystem::path& folder,
                         const std::vector<std::string>& names);

}  // namespace paceline
