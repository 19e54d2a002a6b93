// One trace: from its events to the phases of its steps.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <streambuf>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/core/unpack_limit.h"
#include "engine/facts/json.h"
#include "results/import/kineto.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

using TimeSpan = std::pair<double, double>;  // begin and end
// A set of moments, as intervals that neither touch nor overlap, in order.
using TimeSpans = std::vector<TimeSpan>;

// The set of all moments of any intervals.
TimeSpans merged(TimeSpans all) {
  std::sort(all.begin(), all.end());
  TimeSpans result;
  for (const auto& [begin, end] : all) {
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else if (begin < end) {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

TimeSpans united(TimeSpans a, const TimeSpans& b) {
  a.insert(a.end(), b.begin(), b.end());
  return merged(std::move(a));
}

TimeSpans without(const TimeSpans& from, const TimeSpans& holes) {
  TimeSpans result;
  std::size_t first = 0;
  for (auto [begin, end] : from) {
    while (first < holes.size() && holes[first].second <= begin) ++first;
    for (std::size_t i = first; i < holes.size() && holes[i].first < end; ++i) {
      if (holes[i].first > begin) result.emplace_back(begin, holes[i].first);
      begin = std::max(begin, holes[i].second);
    }
    if (begin < end) result.emplace_back(begin, end);
  }
  return result;
}

TimeSpans common(const TimeSpans& a, const TimeSpans& b) {
  return without(a, without(a, b));
}

double length(const TimeSpans& set) {
  double sum = 0;
  for (const auto& [begin, end] : set) sum += end - begin;
  return sum;
}

bool covers(const TimeSpans& set, double time) {
  const auto next = std::upper_bound(set.begin(), set.end(), TimeSpan{time, HUGE_VAL});
  return next != set.begin() && time < std::prev(next)->second;
}

// A gzipped or plain file as a stream.
class UnpackedFile : public std::streambuf {
 public:
  explicit UnpackedFile(const std::string& name)
      : name_(name), file_(gzopen(name.c_str(), "rb"), gzclose) {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(name, unknown) || !file_) {
      throw input_error("the file cannot be read", name, "name another file");
    }
    limit_ = {std::filesystem::file_size(name), name};
  }

 protected:
  int_type underflow() override {
    constexpr std::size_t kMostBytes = 16'000'000'000;
    const int got = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int status = Z_OK;
    gzerror(file_.get(), &status);
    if (got < 0 || status == Z_BUF_ERROR) {
      throw input_error("the gzip data is damaged or cut off", name_,
                        "copy or record the trace again");
    }
    bytes_ += static_cast<std::size_t>(got);
    if (bytes_ > kMostBytes) {
      throw input_error("the trace is larger than " + format_bytes(static_cast<double>(kMostBytes)),
                        name_, "record fewer steps");
    }
    if (gzdirect(file_.get()) == 0) limit_.check(bytes_);
    if (got == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(buffer_.front());
  }

 private:
  const std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 16> buffer_{};
  std::size_t bytes_ = 0;
  UnpackLimit limit_{0, ""};
};

const std::string& text_member(const Json& json, const char* key) {
  static const std::string none;
  const auto* text = find_member(json, key).get_ptr<const std::string*>();
  return text != nullptr ? *text : none;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](auto each) { return text.starts_with(each); });
}

// Of its function's own name: arguments of templates may name anything.
bool is_communication(const std::string& kernel) {
  const std::string name = to_lower(kernel.substr(0, kernel.find_first_of("<(", 1)));
  const auto names = {"nccl", "rccl", "msccl", "nvshmem", "gloo", "barrier"};
  return std::ranges::any_of(names, [&](const char* each) { return name.find(each) != name.npos; });
}

// Of a tensor, or of each tensor of a list.
double element_count(const Json& dimensions) {
  if (!dimensions.is_array() || dimensions.empty()) return 0;
  double product = 1, sum = 0;
  for (const Json& each : dimensions) {
    if (each.is_number()) product *= each.get<double>();
    sum += element_count(each);
  }
  return dimensions.front().is_number() ? product : sum;
}

struct TraceMessage {
  double begin = 0;
  std::int64_t bytes = 0;
  bool is_all_reduce = false;
};

std::int64_t bytes_of_message(double elements, std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  const double bytes = elements * element_type(type.substr(0, type.find(' '))).bytes;
  return bytes >= 1 && bytes < kMostOfACount ? static_cast<std::int64_t>(bytes) : 0;
}

class TraceReader {
 public:
  explicit TraceReader(const std::string& file) { trace_.file = file; }

  KinetoTrace read() {
    UnpackedFile unpacked(trace_.file);
    std::istream stream(&unpacked);
    const auto keep = [this](int depth, Json::parse_event_t event, Json& value) {
      return keep_part(depth, event, value);
    };
    if ((stream >> std::ws).peek() == '[') {
      refuse("the trace is a bare list of events, as the older torch.autograd.profiler writes",
             "record it by torch.profiler.profile and its export_chrome_trace");
    }
    try {
      const Json whole = Json::parse(stream, keep);
      if (!whole.is_object() || !has_events_) refuse(kNotOne);
    } catch (const nlohmann::json::parse_error& error) {
      if (!has_events_) refuse(kNotOne);
      const std::string_view what = error.what();
      const auto has = [&](const char* text) { return what.find(text) != what.npos; };
      if (has("unexpected end of input") || has("missing closing quote")) {
        refuse(fmt::format("the trace is cut off at byte {}", error.byte));
      }
      const auto cause = what.find(" - ");
      refuse(fmt::format("the trace is not JSON at byte {} ({})", error.byte,
                         what.substr(cause + 3, what.find(';', cause) - cause - 3)),
             "if a name is the cause, record it with with_stack=False, or by a newer PyTorch");
    } catch (const nlohmann::json::exception&) {
      refuse(has_events_ ? "a number of the trace is larger than any that is read" : kNotOne);
    }
    divide();
    return std::move(trace_);
  }

 private:
  static constexpr char kNotOne[] = "the file is not a trace of PyTorch's profiler";

  [[noreturn]] void refuse(
      const std::string& what,
      const char* fix =
          "give a file that export_chrome_trace or tensorboard_trace_handler wrote") const {
    throw input_error(what, trace_.file, fix);
  }

  // Whether a part of the text stays in memory. Events are taken and let go one by one.
  bool keep_part(int depth, Json::parse_event_t event, Json& value) {
    using Part = Json::parse_event_t;
    if (depth > static_cast<int>(kMostJsonDepth)) refuse("the trace is nested too deeply");
    const auto is_one_of = [&](std::initializer_list<const char*> keys) {
      const std::string& own = value.get_ref<const std::string&>();
      return std::ranges::any_of(keys, [&](const char* key) { return own == key; });
    };
    if (event == Part::key && depth == 1) {
      section_ = value.get<std::string>();
      has_events_ = has_events_ || section_ == "traceEvents";
      return is_one_of({"traceEvents", "distributedInfo", "deviceProperties"});
    }
    if (event == Part::key && section_ == "traceEvents") {
      if (depth == 3) return is_one_of({"ph", "cat", "name", "tid", "ts", "dur", "args"});
      return depth != 4 || is_one_of({"correlation", "In msg nelems", "dtype", "Collective name",
                                      "Input Dims", "Input type"});
    }
    if (event == Part::object_end && section_ == "traceEvents" && depth == 2) {
      add_event(value);
      return false;
    }
    if (event == Part::object_end && section_ == "distributedInfo" && depth == 1) {
      const auto number = [&](const char* key) -> std::optional<int> {
        const auto real = number_or_empty(find_member(value, key));
        if (!real || *real < 0 || *real > kMostOfAnInt) return std::nullopt;
        return static_cast<int>(*real);
      };
      trace_.rank = number("rank");
      trace_.world_size = number("world_size");
      trace_.backend = text_member(value, "backend");
      return false;
    }
    if (event == Part::object_end && section_ == "deviceProperties" && depth == 2) {
      if (trace_.gpu.empty()) trace_.gpu = text_member(value, "name");
      return false;
    }
    return true;
  }

  void add_event(const Json& event) {
    if (text_member(event, "ph") != "X") return;
    const std::string category = to_lower(text_member(event, "cat"));
    const std::string& name = text_member(event, "name");
    const bool is_copy = category.ends_with("memcpy") || category.ends_with("memset");
    const bool is_launch = category.ends_with("runtime") || category.ends_with("driver");
    const bool is_operator = category == "cpu_op" || category == "operator";
    const bool is_host = is_operator || category == "user_annotation";
    if (category != "kernel" && !is_copy && !is_launch && !is_host) return;
    constexpr double kMostMicroseconds = 9007199254740992.0;  // 2^53; of a duration nanoseconds
    const auto time = number_or_empty(find_member(event, "ts")),
               duration = number_or_empty(find_member(event, "dur"));
    if (!time || !duration || !(std::abs(*time) <= kMostMicroseconds) || !(*duration >= 0) ||
        !(*duration <= kMostMicroseconds / 1000)) {
      ++trace_.left_out;
      return;
    }
    if (!origin_) origin_ = *time;
    const double begin = *time - *origin_;
    const TimeSpan span{begin, begin + *duration};
    const Json& args = find_member(event, "args");
    const auto correlation = number_or_empty(find_member(args, "correlation"));
    const double thread = number_or_empty(find_member(event, "tid")).value_or(0);
    if (is_launch) {
      if (correlation) launches_.insert_or_assign(*correlation, std::pair{thread, begin});
    } else if (is_host) {
      add_host_event(name, is_operator, threads_[thread], span, args);
    } else if (is_copy) {
      copies_.push_back(span);
    } else {
      add_kernel(name, span, correlation, args);
    }
    ++trace_.spans;
  }

  void add_kernel(const std::string& name, TimeSpan span, std::optional<double> correlation,
                  const Json& args) {
    // Older traces have these among the kernels.
    if (name.ends_with(" Sync") || name == "Stream Wait Event") return;
    const std::string& collective = text_member(args, "Collective name");
    if (collective.empty() && !is_communication(name)) {
      kernels_.emplace_back(span, correlation.value_or(-1));
      return;
    }
    device_sums_.push_back(span);
    add_message(of_kernels_, collective, span.first, args);
  }

  // A thread of the host.
  struct Thread {
    TimeSpans operators, waits, backward, update;
  };

  void add_host_event(const std::string& name, bool is_operator, Thread& thread, TimeSpan span,
                      const Json& args) {
    if (name.starts_with("ProfilerStep")) {
      marks_.push_back(span);
    } else if (name.starts_with("enumerate(DataLoader)#")) {
      loading_.push_back(span);
    } else if (name.starts_with("Optimizer.step#")) {
      thread.update.push_back(span);
    } else if (starts_with_any(name, {"gloo:", "mpi:", "ucc:"})) {
      host_sums_.push_back(span);
      thread.waits.push_back(span);
      add_message(of_spans_, name, span.first, args);
    } else if (name == "record_param_comms") {
      thread.waits.push_back(span);
      add_message(of_calls_, text_member(args, "Collective name"), span.first, args);
    } else if (starts_with_any(name, {"c10d::", "c10d_functional::", "_c10d_functional::"})) {
      thread.waits.push_back(span);
    } else if (name.starts_with("nccl:")) {
      calls_nccl_ = true;  // the kernel is what takes time
    } else if (is_operator) {
      thread.operators.push_back(span);
      if (name.starts_with("autograd::engine::evaluate_function")) thread.backward.push_back(span);
    }
  }

  static void add_message(std::vector<TraceMessage>& messages, std::string_view collective,
                          double begin, const Json& args) {
    const Json &elements = find_member(args, "In msg nelems"),
               &dimensions = find_member(args, "Input Dims"),
               &types = find_member(args, "Input type");
    std::int64_t bytes = 0;
    if (elements.is_number()) {
      bytes = bytes_of_message(elements.get<double>(), text_member(args, "dtype"));
    } else if (dimensions.is_array() && !dimensions.empty() && types.is_array() && !types.empty()) {
      bytes = bytes_of_message(element_count(dimensions[0]), text_or_empty(types[0]));
    }
    const std::string name = to_lower(collective);
    const bool is_sum = name.find("allreduce") != name.npos || name.find("all_reduce") != name.npos;
    if (bytes > 0) messages.push_back({begin, bytes, is_sum});
  }

  // All events are read.
  void divide() {
    trace_.on_gpu = !kernels_.empty() || !copies_.empty() || !device_sums_.empty();
    if (!trace_.on_gpu) trace_.gpu.clear();
    if (!trace_.on_gpu && calls_nccl_) {
      throw input_error("the trace has calls of NCCL, but no kernels of a GPU", trace_.file,
                        "record it with ProfilerActivity.CUDA");
    }
    for (auto& [number, thread] : threads_) {
      for (TimeSpans* each : {&thread.operators, &thread.waits, &thread.backward, &thread.update})
        *each = merged(std::move(*each));
      trace_.has_autograd = trace_.has_autograd || !thread.backward.empty();
    }
    trace_.on_gpu ? collect_kernels() : collect_operators();
    const TimeSpans computing = united(united(forward_, backward_), update_);
    if (computing.empty()) {
      throw input_error("the trace has no computing", trace_.file,
                        "record it with ProfilerActivity.CPU, and with CUDA on GPUs");
    }
    const TimeSpans sums = united(device_sums_, host_sums_), loading = merged(loading_);
    const TimeSpans hidden = common(sums, computing);
    const TimeSpans busy = united(computing, sums);
    TimeSpans exposed = without(sums, computing);
    if (!trace_.on_gpu) exposed = without(exposed, loading);
    const TimeSpans device = united(busy, trace_.on_gpu ? merged(copies_) : loading);
    const TimeSpans steps = find_steps(device);
    add_steps(steps, {{Phase::input, trace_.on_gpu ? without(loading, busy) : loading},
                      {Phase::forward, forward_},
                      {Phase::backward, backward_},
                      {Phase::update, update_},
                      {Phase::communication, exposed}});
    // Waits and what is hidden, in the steps alone.
    trace_.times.communication_busy = 1e-6 * length(common(united(exposed, hidden), merged(steps)));
    trace_.device_seconds = 1e-6 * (device.back().second - device.front().first);
    trace_.idle_seconds = trace_.device_seconds - 1e-6 * length(device);
    trace_.compute_seconds = 1e-6 * length(computing);
    trace_.communication_seconds = 1e-6 * length(sums);
    trace_.hidden_seconds = 1e-6 * length(hidden);
    add_messages(steps);
  }

  // A kernel is part of what launched it.
  void collect_kernels() {
    for (const auto& [span, correlation] : kernels_) {
      TimeSpans* part = &forward_;
      if (const auto launch = launches_.find(correlation); launch != launches_.end()) {
        const auto& [number, time] = launch->second;
        const auto thread = threads_.find(number);
        if (thread != threads_.end() && covers(thread->second.update, time)) {
          part = &update_;
        } else if (thread != threads_.end() && covers(thread->second.backward, time)) {
          part = &backward_;
        }
      }
      part->push_back(span);
    }
    update_ = merged(std::move(update_));
    backward_ = without(merged(std::move(backward_)), update_);
    forward_ = without(merged(std::move(forward_)), united(update_, backward_));
  }

  void collect_operators() {
    TimeSpans all, backward, update;
    for (const auto& [number, thread] : threads_) {
      const TimeSpans own = without(thread.operators, thread.waits);
      all.insert(all.end(), own.begin(), own.end());
      backward.insert(backward.end(), thread.backward.begin(), thread.backward.end());
      update.insert(update.end(), thread.update.begin(), thread.update.end());
    }
    all = without(merged(std::move(all)), merged(loading_));
    update_ = common(all, merged(std::move(update)));
    backward_ = without(common(all, merged(std::move(backward))), update_);
    forward_ = without(all, united(update_, backward_));
  }

  // `active`: what the device does. Its work after the last mark belongs to the last step.
  TimeSpans find_steps(const TimeSpans& active) {
    trace_.has_marks = !marks_.empty();
    if (!trace_.has_marks) return {{active.front().first, active.back().second}};
    std::sort(marks_.begin(), marks_.end());
    for (std::size_t i = 0; i + 1 < marks_.size(); ++i) marks_[i].second = marks_[i + 1].first;
    if (trace_.on_gpu) marks_.back().second = std::max(marks_.back().second, active.back().second);
    std::erase_if(marks_, [](const TimeSpan& step) { return step.first >= step.second; });
    if (marks_.empty()) refuse("its marks of steps have no length");
    return marks_;
  }

  void add_steps(const TimeSpans& steps, const std::vector<std::pair<Phase, TimeSpans>>& phases) {
    trace_.times.steps.resize(steps.size());
    // Of a million spans: a float would lose the short ones.
    std::vector<std::array<double, kPhases>> sums(steps.size());
    for (const auto& [phase, set] : phases) {
      std::size_t first = 0;
      for (const auto& [begin, end] : set) {
        while (first < steps.size() && steps[first].second <= begin) ++first;
        for (std::size_t i = first; i < steps.size() && steps[i].first < end; ++i) {
          const double part = std::min(end, steps[i].second) - std::max(begin, steps[i].first);
          sums[i][static_cast<std::size_t>(phase)] += 1e-6 * part;
        }
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      StepTimes& step = trace_.times.steps[i];
      const double total = 1e-6 * (steps[i].second - steps[i].first);
      step.total = static_cast<float>(total);
      sums[i][static_cast<std::size_t>(Phase::other)] =
          std::max(0.0, total - std::accumulate(sums[i].begin(), sums[i].end(), 0.0));
      std::ranges::transform(sums[i], step.seconds.begin(),
                             [](double seconds) { return static_cast<float>(seconds); });
    }
  }

  // The all-reduces of the steps that are most alike: buckets change after the first step.
  void add_messages(const TimeSpans& steps) {
    std::vector<TraceMessage>& messages = !of_calls_.empty()   ? of_calls_
                                          : !of_spans_.empty() ? of_spans_
                                                               : of_kernels_;
    std::ranges::stable_sort(messages, {}, &TraceMessage::begin);
    std::map<std::vector<std::int64_t>, int> counts;
    double bytes = 0;
    for (const auto& [begin, end] : steps) {
      std::vector<std::int64_t> sums;
      for (auto each = std::ranges::lower_bound(messages, begin, {}, &TraceMessage::begin);
           each != messages.end() && each->begin < end; ++each) {
        bytes += static_cast<double>(each->bytes);
        if (each->is_all_reduce) sums.push_back(each->bytes);
      }
      if (sums.empty() || sums.size() > kMostBuckets) continue;
      const int count = ++counts[sums];
      if (count >= counts[trace_.bucket_bytes]) trace_.bucket_bytes = sums;
    }
    trace_.bytes_per_step = bytes / static_cast<double>(steps.size());
  }

  static constexpr std::size_t kMostBuckets = 500;  // that a record has room for

  KinetoTrace trace_;
  std::string section_;  // key of the outermost object
  bool has_events_ = false, calls_nccl_ = false;
  std::optional<double> origin_;  // the time of the first event
  std::map<double, Thread> threads_;
  std::unordered_map<double, std::pair<double, double>> launches_;  // thread and time
  std::vector<std::pair<TimeSpan, double>> kernels_;                // with their correlation
  TimeSpans copies_, device_sums_, host_sums_, loading_, marks_;
  TimeSpans forward_, backward_, update_;
  std::vector<TraceMessage> of_calls_, of_spans_, of_kernels_;
};

}  // namespace

KinetoTrace read_kineto_trace(const std::string& file) {
  return TraceReader(file).read();
}

}  // namespace paceline
