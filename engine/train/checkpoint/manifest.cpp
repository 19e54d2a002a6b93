#include "engine/train/checkpoint/manifest.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kFormat[] = "paceline checkpoint";
constexpr std::size_t kMostEntries = 1 << 20;

Error bad(const std::string& what, const std::string& where) {
  return {ErrorKind::input, what, where, "this checkpoint cannot be used: resume an earlier one"};
}

// A value of the manifest with its path, checked on the way out.
class Field {
 public:
  Field(const Json& json, std::string path, const std::string& where)
      : json_(json), path_(std::move(path)), where_(where) {}

  Field operator[](const char* key) const {
    if (!json_.is_object() || !json_.contains(key)) throw bad("has no " + key_path(key), where_);
    return {json_[key], key_path(key), where_};
  }
  std::size_t count() const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > kMost) wrong("a count");
    return json_.get<std::size_t>();
  }
  int small() const {
    if (count() > kMostEntries) wrong("a small count");
    return static_cast<int>(count());
  }
  double number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>())) wrong("a number");
    return json_.get<double>();
  }
  std::string text() const {
    if (!json_.is_string()) wrong("a text");
    return json_.get<std::string>();
  }
  std::vector<Field> list() const {
    if (!json_.is_array() || json_.size() > kMostEntries) wrong("a list");
    return elements();
  }
  std::vector<Field> list_at(std::size_t size) const {
    if (!json_.is_array() || json_.size() != size) wrong(fmt::format("a list of {}", size).c_str());
    return elements();
  }
  std::map<std::string, std::string> texts() const {
    if (!json_.is_object()) wrong("an object");
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : json_.items()) {
      all[key] = Field(value, key_path(key.c_str()), where_).text();
    }
    return all;
  }

 private:
  std::vector<Field> elements() const {
    std::vector<Field> fields;
    for (const Json& one : json_) fields.emplace_back(one, path_ + "[]", where_);
    return fields;
  }
  std::string key_path(const char* key) const { return path_.empty() ? key : path_ + "." + key; }
  [[noreturn]] void wrong(const char* wanted) const {
    throw bad(fmt::format("{} is not {}", path_.empty() ? "it" : path_, wanted), where_);
  }

  const Json& json_;
  std::string path_;
  const std::string& where_;
};

// In the order of the manifest's rows.
constexpr std::array kEpochMembers = {&EpochFacts::train_loss, &EpochFacts::train_accuracy,
                                      &EpochFacts::test_loss,  &EpochFacts::test_accuracy,
                                      &EpochFacts::train_top5, &EpochFacts::test_top5};
constexpr double kNotKnown = -1;

Json to_json(const TrainingProgress& progress) {
  Json epochs = Json::array();
  for (const EpochFacts& epoch : progress.epochs) {
    Json& row = epochs.emplace_back(Json::array());
    for (const auto member : kEpochMembers) row.push_back((epoch.*member).value_or(kNotKnown));
  }
  return {{"step", progress.step},
          {"epoch", progress.epoch},
          {"position", progress.position},
          {"position_in_epoch", progress.position_in_epoch},
          {"updates", progress.updates},
          {"sums", progress.sums},
          {"epochs", epochs}};
}

TrainingProgress parse_progress(const Field& field) {
  TrainingProgress progress;
  progress.step = field["step"].count();
  progress.epoch = field["epoch"].small();
  progress.position = field["position"].count();
  progress.position_in_epoch = field["position_in_epoch"].count();
  progress.updates = static_cast<long>(field["updates"].count());
  const auto sums = field["sums"].list_at(progress.sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) progress.sums[i] = sums[i].number();
  for (const Field& row : field["epochs"].list()) {
    const auto values = row.list_at(kEpochMembers.size());
    EpochFacts& epoch = progress.epochs.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (const double value = values[i].number(); value != kNotKnown) {
        epoch.*kEpochMembers[i] = value;
      }
    }
  }
  return progress;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

}  // namespace

std::string CheckpointManifest::json() const {
  Json all_files = Json::array();
  for (const CheckpointFile& file : files) {
    all_files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.hash}});
  }
  const Json json = {{"format", kFormat},
                     {"version", kCheckpointVersion},
                     {"workload", workload},
                     {"network", network},
                     {"progress", to_json(progress)},
                     {"ranks", ranks},
                     {"global_batch", global_batch},
                     {"optimizer", optimizer},
                     {"real", real},
                     {"run", run},
                     {"loss_scale", loss_scale},
                     {"created_at", created_at},
                     {"files", all_files}};
  return json_text(json, 2) + "\n";
}

std::size_t CheckpointManifest::bytes() const {
  std::size_t bytes = 0;
  for (const CheckpointFile& file : files) bytes += file.bytes;
  return bytes;
}

std::string CheckpointManifest::text() const {
  std::string text = fmt::format(
      "  {} after {}, {}{}; {}, global batch {}, {}, {}\n", workload,
      counted(progress.step, "step"), counted(progress.epoch, "epoch"),
      progress.position_in_epoch > 0 ? " and " + counted(progress.position_in_epoch, "sample") : "",
      counted(ranks, "rank"), global_batch, optimizer, real);
  if (!progress.epochs.empty()) {
    const EpochFacts& last = progress.epochs.back();
    text += fmt::format("  training loss {:.4f}{}\n", last.train_loss.value_or(std::nan("")),
                        last.test_accuracy
                            ? fmt::format(", test accuracy {:.2f} %", 100 * *last.test_accuracy)
                            : "");
  }
  for (const CheckpointFile& file : files) {
    text += fmt::format("  {:<26} {:>10}  xxh3 {}\n", file.name,
                        format_bytes(static_cast<double>(file.bytes)), file.hash);
  }
  return text + fmt::format("  written {} by build {}\n", created_at,
                            run.contains("build") ? run.at("build") : "unknown");
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& where) {
  const JsonDocument document(where, text);
  const Field root(document.value(), "", where);
  if (root["format"].text() != kFormat) throw bad("is not a manifest of a checkpoint", where);
  const int version = root["version"].small();
  if (version != kCheckpointVersion) {
    throw Error(ErrorKind::input,
                fmt::format("the checkpoint is of version {}, and this program knows {}", version,
                            kCheckpointVersion),
                where, "use the paceline that wrote it");
  }
  CheckpointManifest manifest;
  manifest.workload = root["workload"].text();
  manifest.network = root["network"].text();
  manifest.progress = parse_progress(root["progress"]);
  manifest.ranks = root["ranks"].small();
  manifest.global_batch = root["global_batch"].count();
  if (manifest.ranks < 1 || manifest.global_batch < 1) throw bad("is of no ranks", where);
  manifest.optimizer = root["optimizer"].text();
  manifest.real = root["real"].text();
  manifest.run = root["run"].texts();
  manifest.loss_scale = root["loss_scale"].text();
  manifest.created_at = root["created_at"].text();
  for (const Field& file : root["files"].list()) {
    manifest.files.push_back({file["name"].text(), file["bytes"].count(), file["xxh3"].text()});
    if (!is_plain_name(manifest.files.back().name)) {
      throw bad("names a file outside its folder", where);
    }
  }
  return manifest;
}

namespace {

constexpr double kMost = 1e9;

CheckpointUnit parse_unit(std::string_view word) {
  if (word == "step" || word == "steps") return CheckpointUnit::steps;
  if (word == "epoch" || word == "epochs") return CheckpointUnit::epochs;
  if (word == "minute" || word == "minutes") return CheckpointUnit::minutes;
  return CheckpointUnit::never;
}

}  // namespace

bool CheckpointSchedule::after_step(std::size_t step) const {
  return unit == CheckpointUnit::steps && step % static_cast<std::size_t>(every) == 0;
}

bool CheckpointSchedule::after_epoch(int epoch) const {
  return unit == CheckpointUnit::epochs && epoch % static_cast<int>(every) == 0;
}

bool CheckpointSchedule::after_seconds(double seconds) const {
  return unit == CheckpointUnit::minutes && seconds >= 60 * every;
}

CheckpointSchedule parse_checkpoint_schedule(const std::string& text, const std::string& where) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::size_t word = end == std::string::npos ? end : text.find_first_not_of(" -", end);
  CheckpointSchedule schedule;
  if (word != std::string::npos) {
    const auto number = to_real(text.substr(0, end));
    schedule.unit = parse_unit(std::string_view(text).substr(word));
    schedule.every = number.value_or(0);
  }
  const bool whole =
      schedule.unit == CheckpointUnit::minutes || std::floor(schedule.every) == schedule.every;
  if (schedule.unit == CheckpointUnit::never || schedule.every <= 0 || schedule.every > kMost ||
      !whole) {
    throw Error(ErrorKind::usage, "checkpoint_every cannot be \"" + text + "\"", where,
                "give a number and its unit: 500steps, 1epoch or 10minutes");
  }
  return schedule;
}

}  // namespace paceline
