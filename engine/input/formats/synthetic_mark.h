// Marks generated data sets with a file in their folder. TensorFlow Datasets would reject an extra
// key in dataset_info.json.
#pragma once

#include <filesystem>

namespace paceline {

constexpr char kSyntheticMark[] = "SYNTHETIC.txt";

void mark_synthetic(const std::filesystem::path& folder);
bool has_synthetic_mark(const std::filesystem::path& folder);

}  // namespace paceline
