// The mark of a data set that was made here: a file in its folder. Not a key of dataset_info.json,
// which TensorFlow Datasets would refuse to read then.
#pragma once

#include <filesystem>

namespace paceline {

constexpr char kSyntheticMark[] = "SYNTHETIC.txt";

void mark_synthetic(const std::filesystem::path& folder);
bool has_synthetic_mark(const std::filesystem::path& folder);

}  // namespace paceline
