// The folder of a report. Files are written atomically, and never replace other tools' files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/output_file.h"

namespace paceline {

// A file of the report in `folder`. It may replace an existing one only if the folder contains a
// report of Paceline (a report.json, collectives.json or history.json that says so).
OutputFile report_file(const std::filesystem::path& folder, const std::string& name);

// Throws input naming an existing file that is not part of a report.
void check_report_folder(const std::filesystem::path& folder,
                         const std::vector<std::string>& names);

}  // namespace paceline
