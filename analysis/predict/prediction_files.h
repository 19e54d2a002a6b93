// Writes predictions as files: prediction.json, .csv, .md, .html and the plots.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/predict/prediction.h"

namespace paceline {

// Replaces only files of an older report or prediction (report_files.h). Returns the paths written.
// Plots are left out where `formats` is empty. Throws usage at the end if gnuplot is missing.
std::vector<std::filesystem::path> write_predictions(const std::vector<Prediction>& predictions,
                                                     const std::filesystem::path& folder,
                                                     const std::vector<std::string>& formats);

}  // namespace paceline
