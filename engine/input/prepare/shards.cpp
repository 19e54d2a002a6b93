#include "engine/input/prepare/shards.h"

#include <algorithm>
#include <numeric>

#include "engine/core/hash.h"
#include "engine/input/formats/source.h"
#include "engine/input/prepare/progress.h"
#include "engine/input/prepare/tfds_writer.h"

namespace paceline {

namespace {

constexpr std::uint64_t kShardBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostShards = 512;

std::size_t shards_for(const SampleSource& source) {
  std::uint64_t bytes = 0;
  for (const auto& file : source.files()) bytes += std::filesystem::file_size(file);
  std::size_t shards = 1;
  while (2 * shards <= kMostShards && bytes / (2 * shards) >= kShardBytes) shards *= 2;
  return shards;
}

}  // namespace

void write_shards(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::string& name, const std::string& version,
                  const std::string& description, int threads, bool quiet) {
  const ImageSet set = open_image_set(from);
  std::size_t images = 0;
  for (const auto& [split, source] : set.splits) images += source->samples();
  PrepareProgress progress("writing shards", static_cast<double>(images),
                           PrepareProgress::Unit::images, quiet);
  TfdsWriter writer(to, name, set.classes);
  for (const auto& entry : set.splits) {
    const SampleSource& source = *entry.second;
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < source.samples(); ++i) {
      const std::filesystem::path file = source.where(i);
      order.emplace_back(hash_value(file.filename().string()), i);
    }
    std::sort(order.begin(), order.end());
    writer.write_split(entry.first, order.size(), shards_for(source), threads, [&](std::size_t i) {
      EncodedSample sample;
      source.read(order[i].second, sample);
      progress.add(1);
      return WrittenSample{std::string(sample.image),
                           std::filesystem::path(source.where(order[i].second)).filename().string(),
                           sample.label};
    });
  }
  writer.finish(version, description);
}

}  // namespace paceline
