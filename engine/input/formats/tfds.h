// A folder that TensorFlow Datasets prepared: dataset_info.json (old and new form),
// label.labels.txt or features.json (old and new form), and shards of TFRecords.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

// The folder that holds dataset_info.json: this one, or the one version folder below; empty: none.
// Throws input where there are several versions.
std::filesystem::path find_tfds(const std::filesystem::path& folder);

// `folder` holds dataset_info.json. A split whose shards are not all there is listed as absent,
// with the missing shard.
ImageSet open_tfds(const std::filesystem::path& folder, const ReadOptions& options);

// What open_tfds() reads, without opening the shards.
std::vector<std::filesystem::path> tfds_files(const std::filesystem::path& folder);

}  // namespace paceline
