// Class folders to TFRecord shards, as TensorFlow Datasets would prepare them.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `from` has class folders below train/ and others; `to` is there and empty. Samples are mixed by a
// hash of their file names; the number of shards is TensorFlow Datasets' rule: the largest power of
// two that leaves 64 MiB a shard.
void write_shards(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::string& name, const std::string& version,
                  const std::string& description, int threads, bool quiet);

}  // namespace paceline
