// Logs of MLPerf Training (github.com/mlcommons/logging): lines ":::MLLOG {...}" with a key, a
// value and the time in milliseconds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::string_view kMark = ":::MLLOG";

std::string utc_text(double unix_milliseconds) {
  const auto seconds = static_cast<std::time_t>(unix_milliseconds / 1e3);
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&seconds, &utc) != nullptr) strftime(text, sizeof text, "%FT%TZ", &utc);
  return text;
}

// A log does not name its round. There are two a year, each with other software.
std::string round_text(const std::string& utc) {
  if (utc.size() < 7) return "";
  return fmt::format("half {} of {}", utc.substr(5, 2) < "07" ? 1 : 2, utc.substr(0, 4));
}

class MlperfReader {
 public:
  explicit MlperfReader(const ForeignFile& file) : file_(file) {}

  ImportContent read() {
    for (const TextLine& line : split_lines(file_.text)) {
      // Two processes may have written into one line.
      std::string_view rest = line.text;
      for (auto at = rest.find(kMark); at != rest.npos; at = rest.find(kMark)) {
        rest.remove_prefix(at + kMark.size());
        read_event(line.number, rest);
      }
    }
    for (const auto& [time, name] : {std::pair{started_, "run_start"}, {stopped_, "run_stop"}}) {
      if (time) continue;
      refuse_line(file_, 1, fmt::format("the log has no {}: it is cut short", name),
                  "import the complete log");
    }
    content_.tool = "MLPerf Training";
    make_record();
    return std::move(content_);
  }

 private:
  void read_event(std::size_t line, std::string_view text) {
    const ObjectText object = object_at_begin(text);
    if (object.text.empty()) {
      refuse_line(file_, line, "the entry is not JSON: it does not end, or other text breaks it",
                  "remove the line, or import the complete log");
    }
    const Json event = parse_json(object.text);
    const Json &key = find_member(event, "key"), &value = find_member(event, "value"),
               &data = find_member(event, "metadata");
    const auto stamp = number_or_empty(find_member(event, "time_ms"));
    if (!key.is_string() || !stamp) {
      refuse_line(file_, line, "the entry is not JSON with a key and time_ms",
                  "import the complete log");
    }
    const std::string name = text_or_empty(key);
    if (object.has_not_finite) note_not_finite(line, name);
    // If several processes log the same, the first counts.
    const std::string space = text_or_empty(find_member(event, "namespace"));
    const double time = *stamp;
    if (name == "run_start") {
      if (started_ && space == space_) {
        refuse_line(file_, line, "the log has a second run", "split it into a file a run");
      }
      if (started_) return;
      started_ = time;
      space_ = space;
      line_ = line;
    }
    if (started_ && space != space_) return;
    if (name == "run_stop") {
      stopped_ = time;
      status_ = text_or_empty(find_member(data, "status"));
    } else if (name == "eval_start") {
      evaluating_since_ = time;
    } else if (name == "eval_stop" && evaluating_since_) {
      evaluation_ms_ += std::max(0.0, time - *evaluating_since_);
      evaluating_since_.reset();
    } else if (name == "eval_accuracy" && value.is_number()) {
      add_accuracy(value.get<double>(), data);
    } else if (const auto rate = number_or_empty(find_member(value, "throughput"));
               name == "tracked_stats" && rate) {
      rates_.push_back(*rate);
    } else {
      values_.emplace(name, value);
    }
    if (name == "block_start" || name == "epoch_start") count_epochs(data);
  }

  void note_not_finite(std::size_t line, const std::string& key) {
    if (++not_finite_ > 1) return;
    content_.notes.push_back(fmt::format(
        "warning: {} at line {} has a value that is not finite; such values are left out",
        printable(key.substr(0, 60)), line));
  }

  const Json& logged(const char* key) const {
    static const Json none;
    const auto it = values_.find(key);
    return it == values_.end() ? none : it->second;
  }
  std::optional<double> number(const char* key) const { return number_or_empty(logged(key)); }
  std::string text(const char* key) const { return text_or_empty(logged(key)); }

  void add_accuracy(double accuracy, const Json& data) {
    accuracy_ = accuracy;
    const auto epoch = number_or_empty(find_member(data, "epoch_num"));
    if (!epoch || !(*epoch >= 1) || *epoch > 1e6 || *epoch != std::floor(*epoch)) return;
    EpochFacts facts{.test_accuracy = accuracy, .epoch = static_cast<std::int64_t>(*epoch)};
    epochs_.push_back(facts);
    last_epoch_ = std::max(last_epoch_, *epoch);
  }

  // Blocks say how many epochs they have; of the last one the whole may not have been needed.
  void count_epochs(const Json& data) {
    const auto first = number_or_empty(find_member(data, "first_epoch_num")),
               count = number_or_empty(find_member(data, "epoch_count")),
               epoch = number_or_empty(find_member(data, "epoch_num"));
    if (first && count) begun_ = std::max(begun_, *first + *count - 1);
    if (epoch) begun_ = std::max(begun_, *epoch);
  }

  void make_record() {
    const double seconds = (*stopped_ - *started_) / 1e3, evaluation = evaluation_ms_ / 1e3;
    if (!(seconds > evaluation)) {
      refuse_line(file_, line_, "run_stop is not after run_start and the evaluations",
                  "import an undamaged log");
    }
    ImportedRun& run = content_.runs.emplace_back();
    run.line = line_;
    RunRecord& record = run.record;
    record.workload = text("submission_benchmark");
    if (record.workload.empty()) record.workload = "mlperf";
    record.status = status_ == "success" ? "completed" : "failed";
    if (!record.completed()) {
      record.reason = "run_stop has status \"" + status_ + "\": the target quality was not reached";
    }
    record.layout.replicas_are = "gpus";
    record.timing->fit_seconds = seconds - evaluation;
    if (evaluation > 0) record.timing->evaluation_seconds = evaluation;
    Provenance& made = record.provenance;
    made.time_is = "run_start to run_stop without evaluations";
    made.started_at = utc_text(*started_);
    made.hardware = text("submission_platform");
    made.stack = join(each_once({text("submission_org"), text("submission_division"),
                                 round_text(made.started_at)}),
                      ", ");
    add_rate(record);
    add_quality(record, seconds);
    for (const auto& [key, parameter] :
         {std::pair{"global_batch_size", "global_batch"},
          {"gradient_accumulation_steps", "gradient_accumulation_steps"},
          {"seed", "seed"}}) {
      const auto value = number(key);
      if (!value || *value < 0 || *value > 9e15 || *value != std::floor(*value)) continue;
      record.parameters.set(parameter, static_cast<std::int64_t>(*value));
    }
    record.plan.global_batch = number("global_batch_size");
    if (const std::string optimizer = text("opt_name"); !optimizer.empty()) {
      record.parameters.set("optimizer", optimizer);
      record.plan.learning_rate = number((optimizer + "_opt_base_learning_rate").c_str());
      if (!record.plan.learning_rate) record.plan.learning_rate = number("opt_base_learning_rate");
    }
  }

  // The median of logged rates without the first, where there are such; else the samples tell.
  void add_rate(RunRecord& record) {
    const double epochs = last_epoch_ > 0 ? last_epoch_ : begun_;
    const auto samples = number("train_samples");
    if (samples && *samples > 0 && epochs > 0) record.throughput->samples = *samples * epochs;
    if (rates_.size() > 1) rates_.erase(rates_.begin());
    std::sort(rates_.begin(), rates_.end());
    if (!rates_.empty() && rates_[rates_.size() / 2] > 0) {
      record.throughput->samples_per_second = rates_[rates_.size() / 2];
      record.provenance.rate_is = "median of the logged throughput without its first value";
    } else if (record.throughput->samples) {
      record.provenance.rate_is = "samples over the time";
    }
  }

  void add_quality(RunRecord& record, double seconds) {
    const bool is_share = accuracy_ && *accuracy_ >= 0 && *accuracy_ <= 1;
    if (is_share) {
      record.quality.epochs = epochs_;
      record.quality.test_accuracy = accuracy_;
    }
    GoalFacts& goal = record.quality.until.emplace();
    goal.goal = "MLPerf's target quality";
    goal.reached = record.completed();
    if (!record.completed()) return;
    if (last_epoch_ > 0) goal.epochs = last_epoch_;
    goal.fit_seconds = record.timing->fit_seconds;
    goal.seconds_with_evaluation = seconds;
  }

  const ForeignFile& file_;
  ImportContent content_;
  std::map<std::string, Json> values_;
  std::string space_, status_;
  std::optional<double> started_, stopped_, evaluating_since_, accuracy_;
  std::size_t line_ = 1, not_finite_ = 0;
  double evaluation_ms_ = 0, last_epoch_ = 0, begun_ = 0;
  std::vector<EpochFacts> epochs_;
  std::vector<double> rates_;
};

}  // namespace

ImportFormat mlperf_format() {
  return {.name = "mlperf",
          .what = "a log of MLPerf Training",
          .example = "result_*.txt --study resnet --set gpus=16",
          .is_one = [](std::string_view text) { return text.find(kMark) != text.npos; },
          .read = [](const ForeignFile& file) { return MlperfReader(file).read(); }};
}

}  // namespace paceline
