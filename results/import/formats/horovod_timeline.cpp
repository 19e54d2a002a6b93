// Horovod's timeline (HOROVOD_TIMELINE): Chrome trace events in microseconds, in an array that a
// running or killed job never closes. A process of the trace is a tensor. Its "B" and "E" events
// nest: first NEGOTIATE_ALLREDUCE until all ranks are ready, then ALLREDUCE with its parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr std::size_t kMostTensors = 80, kLongestName = 60;
constexpr int kMostRanks = 1000000;

struct TensorSpans {
  std::string name;
  std::vector<std::pair<std::string, double>> open;  // activities that have begun, and when
  std::vector<double> negotiations, reductions, starts;
  std::int64_t elements = 0;
  ElementType type;
};

// "[3, 3, 64]" is 576 elements, "[]" one; 0: it is not a shape.
std::int64_t count_elements(const std::string& shape) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return 0;
  double product = 1;
  for (const std::string& part : split(shape.substr(1, shape.size() - 2), ',')) {
    if (trim(part).empty()) continue;
    const auto number = to_integer(trim(part));
    if (!number || *number < 1) return 0;
    product *= static_cast<double>(*number);
  }
  return product < 1e15 ? static_cast<std::int64_t>(product) : 0;
}

class TimelineReader {
 public:
  explicit TimelineReader(const ForeignFile& file) : file_(file) {}

  ImportContent read() {
    const std::string_view text = file_.text;
    bool is_cut = false;
    for (auto at = text.find('{', text.find('[')); at < text.size();) {
      const ObjectText object = object_at_begin(text.substr(at));
      at += object.bytes;
      is_cut = object.bytes == 0;
      if (is_cut) break;
      const Json event = parse_json(object.text);
      if (!event.is_object()) refuse(at, "an event is not JSON");
      read_event(event, at);
      at = text.find('{', at);
    }
    content_.tool = "Horovod";
    make_record(is_cut);
    return std::move(content_);
  }

 private:
  [[noreturn]] void refuse(std::size_t at, const std::string& what) const {
    const auto line = 1 + std::count(file_.text.begin(),
                                     file_.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    refuse_line(file_, static_cast<std::size_t>(line), what, "import the file as Horovod wrote it");
  }

  void read_event(const Json& event, std::size_t at) {
    const Json &pid = find_member(event, "pid"), &args = find_member(event, "args");
    if (!pid.is_number_integer()) return;  // a cycle's start
    TensorSpans& tensor = tensors_[pid.get<std::int64_t>()];
    const std::string phase = text_or_empty(find_member(event, "ph")),
                      name = text_or_empty(find_member(event, "name"));
    if (phase == "M") {
      if (name == "process_name") tensor.name = text_or_empty(find_member(args, "name"));
      return;
    }
    const auto time = number_or_empty(find_member(event, "ts"));
    if (!time) refuse(at, "an event has no ts");
    if (phase == "B") {
      tensor.open.emplace_back(name, *time);
      if (name == "NEGOTIATE_ALLREDUCE") tensor.starts.push_back(*time);
    } else if (phase == "E") {
      if (!tensor.open.empty()) end_activity(tensor, *time, args, at);
    } else if (const auto rank = to_integer(name); rank && *rank >= 0 && *rank < kMostRanks) {
      ranks_ = std::max(ranks_, static_cast<int>(*rank) + 1);  // this rank is ready to reduce
    }
  }

  void end_activity(TensorSpans& tensor, double time, const Json& args, std::size_t at) {
    const auto [name, begin] = tensor.open.back();
    tensor.open.pop_back();
    if (time < begin) refuse(at, "an activity ends before it begins");
    if (name == "NEGOTIATE_ALLREDUCE") tensor.negotiations.push_back(time - begin);
    if (name != "ALLREDUCE") return;
    tensor.reductions.push_back(time - begin);
    if (!args.is_object()) return;
    tensor.elements = count_elements(text_or_empty(find_member(args, "shape")));
    tensor.type = element_type(text_or_empty(find_member(args, "dtype")));
  }

  static double total(const TensorSpans& tensor) {
    return std::accumulate(tensor.reductions.begin(), tensor.reductions.end(), 0.0);
  }

  static double seconds_at(std::vector<double> microseconds, double share) {
    std::sort(microseconds.begin(), microseconds.end());
    return std::max(kMicro, kMicro * quantile(microseconds, share));
  }

  CollectiveRow make_row(const TensorSpans& tensor) const {
    CollectiveRow row;
    row.label = tensor.name.size() <= kLongestName
                    ? tensor.name
                    : ".." + tensor.name.substr(tensor.name.size() - kLongestName);
    row.label = printable(row.label);
    row.count = tensor.elements;
    row.bytes = tensor.elements * tensor.type.bytes;
    row.samples = static_cast<std::int64_t>(tensor.reductions.size());
    row.calls_per_sample = 1;
    row.seconds = seconds_at(tensor.reductions, 0.5);
    row.seconds_min = seconds_at(tensor.reductions, 0);
    row.seconds_p95 = seconds_at(tensor.reductions, 0.95);
    if (!tensor.negotiations.empty()) {
      row.negotiation_seconds = seconds_at(tensor.negotiations, 0.5);
    }
    return row;
  }

  // A step is the time from one negotiation of `tensor`, which was reduced most often, to the next.
  void add_steps(RunRecord& record, const TensorSpans& tensor) const {
    std::vector<double> steps;
    for (std::size_t i = 1; i < tensor.starts.size(); ++i) {
      steps.push_back(kMicro * (tensor.starts[i] - tensor.starts[i - 1]));
    }
    record.throughput.steps = static_cast<double>(tensor.reductions.size());
    if (steps.empty() || *std::min_element(steps.begin(), steps.end()) <= 0) return;
    const StepQuantiles& step = record.timing.step_seconds.emplace_back(step_quantiles(steps));
    record.collective->note +=
        fmt::format("; a step took {}, from one negotiation of a tensor to the next",
                    format_seconds(*step.p50));
  }

  void make_record(bool is_cut) {
    std::vector<const TensorSpans*> reduced;
    std::size_t unknown = 0;
    for (const auto& [pid, tensor] : tensors_) {
      if (tensor.reductions.empty()) continue;
      const bool is_known = tensor.elements > 0 && tensor.type.bytes > 0;
      if (is_known) {
        reduced.push_back(&tensor);
      } else {
        ++unknown;
      }
    }
    if (reduced.empty()) {
      refuse_line(file_, 1, "the timeline has no finished all-reduce of a tensor of known size",
                  "import a longer timeline");
    }
    std::stable_sort(reduced.begin(), reduced.end(),
                     [](const auto* a, const auto* b) { return total(*a) > total(*b); });
    ImportedRun& run = content_.runs.emplace_back();
    RunRecord& record = run.record;
    if (ranks_ > 0) set_replicas(record, ranks_);
    record.layout.replicas_are = "gpus";
    record.provenance.backend_requested = "Horovod";
    CollectiveFacts& facts = record.collective.emplace();
    facts.operation = "all_reduce in training";
    facts.dtype = reduced.front()->type.name;
    facts.note =
        "by tensor, longest in sum first; time of the all-reduce that a tensor was part of, which "
        "fusion may share among tensors";
    for (const TensorSpans* tensor : reduced) {
      if (facts.rows.size() < kMostTensors) facts.rows.push_back(make_row(*tensor));
    }
    const auto most = std::max_element(
        reduced.begin(), reduced.end(),
        [](const auto* a, const auto* b) { return a->reductions.size() < b->reductions.size(); });
    add_steps(record, **most);
    if (reduced.size() > kMostTensors) {
      content_.notes.push_back(fmt::format("of {} tensors, the {} with most time are kept",
                                           reduced.size(), kMostTensors));
    }
    if (unknown > 0) {
      content_.notes.push_back(fmt::format("{} tensors without a size are left out", unknown));
    }
    if (is_cut) content_.notes.emplace_back("the file ends within an event, which is left out");
  }

  const ForeignFile& file_;
  ImportContent content_;
  std::map<std::int64_t, TensorSpans> tensors_;
  int ranks_ = 0;
};

}  // namespace

ImportFormat horovod_timeline_format() {
  return {
      .name = "horovod-timeline",
      .what = "a Horovod timeline",
      .example = "timeline.json --study timeline",
      .is_one =
          [](std::string_view text) {
            return text.find("\"NEGOTIATE_") != text.npos ||
                   (text.find("\"CYCLE_START\"") != text.npos && text.find("\"ts\"") != text.npos);
          },
      .read = [](const ForeignFile& file) { return TimelineReader(file).read(); },
      .if_too_large = "import its beginning, as of: head -c 200M; a timeline needs no end"};
}

}  // namespace paceline
