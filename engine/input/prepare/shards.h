// Converts class folders to TFRecord shards, like TensorFlow Datasets.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `from` has class folders in train/ and other splits; `to` exists and is empty. Samples are
// shuffled by a hash of their file names. The number of shards follows TensorFlow Datasets: the
// largest power of two that leaves 64 MiB per shard.
void write_shards(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::string& name, const std::string& version,
                  const std::string& description, int threads, bool quiet);

}  // namespace paceline
