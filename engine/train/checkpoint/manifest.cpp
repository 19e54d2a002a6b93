#include "engine/train/checkpoint/manifest.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kFormat[] = "paceline checkpoint";
constexpr std::int64_t kMostEntries = 1 << 20;

constexpr double kLargest = std::numeric_limits<double>::max();

std::size_t read_count(const JsonField& field) {
  return static_cast<std::size_t>(field.whole(0, std::int64_t{1} << 53));
}

int read_small_count(const JsonField& field) {
  return static_cast<int>(field.whole(0, kMostEntries));
}

std::vector<JsonField> read_list(const JsonField& field, std::size_t size) {
  std::vector<JsonField> elements = field.elements();
  if (elements.size() != size)
    field.fail(fmt::format("{} must be a list of {}", field.key(), size));
  return elements;
}

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

TrainingProgress parse_progress(const JsonField& field) {
  TrainingProgress progress{.step = read_count(field.at("step")),
                            .epoch = read_small_count(field.at("epoch")),
                            .position = read_count(field.at("position")),
                            .position_in_epoch = read_count(field.at("position_in_epoch")),
                            .updates = static_cast<long>(read_count(field.at("updates")))};
  const auto sums = read_list(field.at("sums"), progress.sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    progress.sums[i] = sums[i].number(-kLargest, kLargest);
  }
  for (const JsonField& row : field.at("epochs").elements()) {
    const auto values = read_list(row, kEpochMembers.size());
    EpochFacts& epoch = progress.epochs.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i].number(-kLargest, kLargest);
      if (value != kNotKnown) epoch.*kEpochMembers[i] = value;
    }
  }
  return progress;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

constexpr double kMost = 1e9;

CheckpointUnit parse_unit(std::string_view word) {
  if (word == "step" || word == "steps") return CheckpointUnit::steps;
  if (word == "epoch" || word == "epochs") return CheckpointUnit::epochs;
  if (word == "minute" || word == "minutes") return CheckpointUnit::minutes;
  return CheckpointUnit::never;
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
  return summed(files, &CheckpointFile::bytes);
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
  const JsonField root(document, "this checkpoint cannot be used: resume an earlier one");
  if (root.at("format").text() != kFormat) root.fail("is not a manifest of a checkpoint");
  const int version = read_small_count(root.at("version"));
  if (version != kCheckpointVersion) {
    root.fail(fmt::format("the checkpoint is of version {}, and this program knows {}", version,
                          kCheckpointVersion),
              "use the paceline that wrote it");
  }
  CheckpointManifest manifest;
  manifest.workload = root.at("workload").text_or_empty();
  manifest.network = root.at("network").text_or_empty();
  manifest.progress = parse_progress(root.at("progress"));
  manifest.ranks = read_small_count(root.at("ranks"));
  manifest.global_batch = read_count(root.at("global_batch"));
  if (manifest.ranks < 1 || manifest.global_batch < 1) root.fail("is of no ranks");
  manifest.optimizer = root.at("optimizer").text_or_empty();
  manifest.real = root.at("real").text_or_empty();
  for (const JsonField& fact : root.at("run").members()) {
    manifest.run[fact.key()] = fact.text_or_empty();
  }
  manifest.loss_scale = root.at("loss_scale").text_or_empty();
  manifest.created_at = root.at("created_at").text_or_empty();
  for (const JsonField& file : root.at("files").elements()) {
    manifest.files.push_back({file.at("name").text_or_empty(), read_count(file.at("bytes")),
                              file.at("xxh3").text_or_empty()});
    if (!is_plain_name(manifest.files.back().name)) file.fail("names a file outside its folder");
  }
  return manifest;
}

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
    throw usage_error("checkpoint_every cannot be \"" + text + "\"", where,
                      "give a number and its unit: 500steps, 1epoch or 10minutes");
  }
  return schedule;
}

}  // namespace paceline
