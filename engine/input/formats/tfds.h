// A folder prepared by TensorFlow Datasets: dataset_info.json (old and new form), label.labels.txt
// or features.json (old and new form), and TFRecord shards.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

// The folder with dataset_info.json: this one, or a single version folder in it. Empty if there is
// none. Throws input for several versions.
std::filesystem::path find_tfds(const std::filesystem::path& folder);

// `folder` contains dataset_info.json. A split with a missing shard is listed as absent, with the
// shard's name.
ImageSet open_tfds(const std::filesystem::path& folder, const ReadOptions& options);

// The files that open_tfds() reads, except the shards.
std::vector<std::filesystem::path> tfds_files(const std::filesystem::path& folder);

}  // namespace paceline
