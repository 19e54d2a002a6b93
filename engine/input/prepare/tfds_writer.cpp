#include "engine/input/prepare/tfds_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/input/prepare/tfrecord_writer.h"
#include "engine/input/prepare/workers.h"

namespace paceline {

namespace {

constexpr std::size_t kInFlight = 64;  // samples in memory at once

Json make_features(std::size_t classes) {
  const std::string module = "tensorflow_datasets.core.features.";
  const Json image = {
      {"pythonClassName", module + "image_feature.Image"},
      {"image", {{"shape", {{"dimensions", {"-1", "-1", "3"}}}}, {"dtype", "uint8"}}}};
  const Json filename = {{"pythonClassName", module + "text_feature.Text"},
                         {"text", Json::object()}};
  const Json label = {{"pythonClassName", module + "class_label_feature.ClassLabel"},
                      {"classLabel", {{"numClasses", std::to_string(classes)}}}};
  return {{"pythonClassName", module + "features_dict.FeaturesDict"},
          {"featuresDict",
           {{"features", {{"image", image}, {"image/filename", filename}, {"label", label}}}}}};
}

}  // namespace

TfdsWriter::TfdsWriter(std::filesystem::path folder, std::string name,
                       std::vector<std::string> classes)
    : folder_(std::move(folder)), name_(std::move(name)), classes_(std::move(classes)) {}

void TfdsWriter::write_split(const std::string& split, std::size_t samples, std::size_t shards,
                             int threads, const std::function<WrittenSample(std::size_t)>& sample) {
  shards = std::clamp<std::size_t>(shards, 1, std::max<std::size_t>(samples, 1));
  Split written{split, {}, 0};
  for (std::size_t s = 0; s < shards; ++s) {
    // As TFDS cuts: boundaries at round(samples x s / shards).
    const std::size_t first = (2 * samples * s + shards) / (2 * shards);
    const std::size_t last = (2 * samples * (s + 1) + shards) / (2 * shards);
    TfRecordWriter shard(folder_ /
                         fmt::format("{}-{}.tfrecord-{:05}-of-{:05}", name_, split, s, shards));
    for (std::size_t at = first; at < last; at += kInFlight) {
      std::vector<std::string> records(std::min(kInFlight, last - at));
      work_on(records.size(), threads, [&](std::size_t i) {
        const WrittenSample made = sample(at + i);
        records[i] = image_example(made.image, made.filename, made.label);
      });
      for (const std::string& record : records) shard.write(record);
    }
    shard.close();
    written.shard_lengths.push_back(last - first);
    written.bytes += shard.bytes();
  }
  bytes_ += written.bytes;
  splits_.push_back(written);
}

// 64-bit numbers are texts, as Protocol Buffers' JSON has them.
void TfdsWriter::finish(const std::string& version, const std::string& description) const {
  Json splits = Json::array();
  for (const Split& split : splits_) {
    Json lengths = Json::array();
    for (const std::size_t length : split.shard_lengths) lengths.push_back(std::to_string(length));
    splits.push_back({{"name", split.name},
                      {"shardLengths", lengths},
                      {"numBytes", std::to_string(split.bytes)},
                      {"filepathTemplate", "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}});
  }
  const Json info = {
      {"name", name_},
      {"version", version},
      {"description", description},
      {"fileFormat", "tfrecord"},
      {"supervisedKeys",
       {{"tuple",
         {{"items", Json::array({{{"featureKey", "image"}}, {{"featureKey", "label"}}})}}}}},
      {"splits", splits}};
  replace_file(folder_ / "dataset_info.json", json_text(info, 2) + "\n");
  replace_file(folder_ / "features.json", json_text(make_features(classes_.size()), 2) + "\n");
  replace_file(folder_ / "label.labels.txt", join(classes_, "\n") + "\n");
}

}  // namespace paceline
