#include "engine/input/prepare/tfds_writer.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/example.pb.h"
#include "engine/input/formats/source.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/input/prepare/staged_folder.h"

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

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw input_error(std::string("the file cannot be written: ") + std::strerror(errno),
                    file.string(), "free some space or choose another folder");
}

std::string image_example(std::string_view image, const std::string& filename, std::int64_t label) {
  wire::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["image"].mutable_bytes_list()->add_value(image.data(), image.size());
  features["image/filename"].mutable_bytes_list()->add_value(filename);
  features["label"].mutable_int64_list()->add_value(label);
  // The order of a map's entries is otherwise another each time.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    example.SerializeToCodedStream(&coded);
  }
  return bytes;
}

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

TfRecordWriter::TfRecordWriter(const std::filesystem::path& file)
    : file_(file), stream_(file, std::ios::binary | std::ios::trunc) {
  if (!stream_) fail(file_);
}

void TfRecordWriter::write(std::string_view data) {
  stream_ << framed_record(data);
  if (!stream_) fail(file_);
  bytes_ += data.size();
}

void TfRecordWriter::close() {
  stream_.close();
  if (!stream_) fail(file_);
}

void write_shards(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::string& name, const std::string& version,
                  const std::string& description, int threads, bool quiet) {
  const ImageSet set = open_image_set(from);
  const auto images = summed(set.splits, [](const auto& split) { return split.second->samples(); });
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
