// Reports of jobstats (github.com/PrincetonUniversity/jobstats), as text or as JSON (jobstats -j):
// a Slurm job with its run time, and utilization and memory of each GPU. Its GB are 2^30 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::size_t kMostGpus = 128;  // that fit into a record
constexpr char kTitle[] = "Slurm Job Statistics";

// "1-02:03:04" or "18:41:56"; empty: it is none.
std::optional<double> parse_clock(const std::string& text) {
  thread_local const Pattern clock(R"((?:(\d{1,6})-)?(?:(\d{1,7}):)?(\d{1,7}):([0-5]?\d))");
  const auto parts = clock.match(text);
  if (!parts) return std::nullopt;
  double seconds = 0;
  for (const auto& [part, unit] : {std::pair{1U, 86400}, {2U, 3600}, {3U, 60}, {4U, 1}}) {
    seconds += unit * to_real(parts->at(part)).value_or(0);
  }
  return seconds;
}

// "Fri Mar 4, 2022 at 1:56 AM" is "2022-03-04T01:56:00", the cluster's time; "" where it is not so.
std::string parse_date(const std::string& text) {
  std::tm time{};
  char date[32] = "";
  const char* rest = strptime(text.c_str(), "%a %b %d, %Y at %I:%M %p", &time);
  if (rest != nullptr && *rest == '\0') strftime(date, sizeof date, "%FT%T", &time);
  return date;
}

// "26.5GB" in bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = to_real(text.substr(0, end));
  double unit = 1;
  for (const char* name : {"B", "KB", "MB", "GB", "TB"}) {
    if (number && text.substr(end) == name && *number * unit <= 1e18) {
      return static_cast<std::int64_t>(*number * unit);
    }
    unit *= 1024;
  }
  return std::nullopt;
}

std::optional<double> parse_share(std::string_view percent) {
  if (!percent.ends_with('%')) return std::nullopt;
  const auto number = to_real(percent.substr(0, percent.size() - 1));
  return number && *number >= 0 && *number <= 100 ? std::optional(*number / 100) : std::nullopt;
}

// What both forms give of a job.
void finish(ImportContent& content, std::optional<std::int64_t> cores) {
  ImportedRun& run = content.runs.back();
  RunRecord& record = run.record;
  record.provenance.time_is = "the job's run time from Slurm, with all that the job did";
  std::erase_if(record.gpus, [](const GpuFacts& gpu) {
    return !gpu.utilization && !gpu.memory_bytes && !gpu.memory_bytes_total;
  });
  double sum = 0;
  std::size_t count = 0;
  for (const GpuFacts& gpu : record.gpus) {
    if (!gpu.utilization) continue;
    sum += *gpu.utilization;
    ++count;
  }
  if (count > 0) record.utilization = sum / static_cast<double>(count);
  const int gpus = record.layout.gpus;
  const auto stated = record.parameters.integer("gpus").value_or(0);
  const std::string job = record.provenance.allocation ? record.provenance.allocation->job : "";
  if (stated != static_cast<std::int64_t>(record.gpus.size())) {
    const bool too_many = stated < static_cast<std::int64_t>(record.gpus.size());
    content.notes.push_back(fmt::format("{}job{} has {} GPUs, but utilization and memory of {}",
                                        too_many ? "warning: " : "", job.empty() ? "" : " " + job,
                                        stated, record.gpus.size()));
  }
  if (count > 0 && static_cast<std::int64_t>(count) < stated) {
    const std::string what = fmt::format(
        "GPU utilization is the mean of {} of {} GPUs, as the others have none", count, stated);
    record.provenance.time_is += "; " + what;
    content.notes.push_back(fmt::format("job{}: {}", job.empty() ? "" : " " + job, what));
  }
  if (record.gpus.size() > kMostGpus) {
    content.notes.push_back(
        fmt::format("of {} GPUs, the facts of {} are kept", record.gpus.size(), kMostGpus));
    record.gpus.resize(kMostGpus);
  }
  if (cores && *cores > 0 && record.parameters.find("gpus") && *cores % gpus == 0) {
    record.layout.cpus_per_replica =
        static_cast<int>(std::min<std::int64_t>(*cores / gpus, 1 << 20));
  }
}

class JobstatsReport {
 public:
  explicit JobstatsReport(const ForeignFile& file) : file_(file) {}

  ImportContent read() {
    for (const TextLine& line : split_lines(file_.text)) {
      if (line.text.find(kTitle) != line.text.npos) {
        end();
        content_.runs.emplace_back().line = line.number;
        values_.clear();
        gpus_.clear();
        section_.clear();
      } else if (!content_.runs.empty()) {
        read_line(line.text);
      }
    }
    end();
    content_.tool = "jobstats";
    return std::move(content_);
  }

 private:
  void read_line(std::string_view line) {
    const std::string_view text = trim(line);
    if (text.starts_with("GPU ") && text.find("per node") != text.npos) {
      section_ = text;
    } else if (text.empty()) {
      section_.clear();
    } else if (!section_.empty()) {
      read_gpu(text);
    } else if (const std::size_t colon = text.find(':'); colon != text.npos) {
      values_.emplace(text.substr(0, colon), trim(text.substr(colon + 1)));
    }
  }

  // "della-i14g2 (GPU 0): 26.5GB/40.0GB (66.2%)"
  void read_gpu(std::string_view text) {
    const std::size_t open = text.find(" (GPU "), end = text.find("): ");
    if (open == text.npos || end == text.npos || end < open) return;
    const auto [it, is_new] =
        gpus_.emplace(text.substr(0, end), content_.runs.back().record.gpus.size());
    auto& gpus = content_.runs.back().record.gpus;
    if (is_new) {
      gpus.emplace_back();
      content_.runs.back().record.each_rank->push_back({.host = std::string(text.substr(0, open))});
    }
    GpuFacts& gpu = gpus[it->second];
    const auto words = split_words(text.substr(end + 3));
    const std::string_view value = words.empty() ? std::string_view() : words.front();
    if (section_.starts_with("GPU utilization")) {
      gpu.utilization = parse_share(value);
    } else if (const std::size_t slash = value.find('/'); slash != value.npos) {
      gpu.memory_bytes = parse_bytes(value.substr(0, slash));
      gpu.memory_bytes_total = parse_bytes(value.substr(slash + 1));
    }
  }

  std::string value(const char* key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? "" : it->second;
  }

  void end() {
    if (content_.runs.empty()) return;
    ImportedRun& run = content_.runs.back();
    RunRecord& record = run.record;
    const std::string state = value("State"), name = value("Job Name");
    if (state.empty() || value("Run Time").empty()) {
      refuse_line(file_, run.line, "the report has no State or no Run Time",
                  "import the complete report");
    }
    const auto seconds = parse_clock(std::string(split_words(value("Run Time")).front()));
    if (!seconds) {
      refuse_line(file_, run.line, "the run time \"" + value("Run Time") + "\" is not a time",
                  "import the report as jobstats prints it");
    }
    if (state == "RUNNING" || state == "PENDING") {
      refuse_line(file_, run.line, "the job has not ended: its state is " + state,
                  "import the report of the ended job");
    }
    record.status = state == "COMPLETED"   ? "completed"
                    : state == "TIMEOUT"   ? "timeout"
                    : state == "PREEMPTED" ? "preempted"
                                           : "failed";
    if (!record.completed()) record.reason = "Slurm's state is " + state;
    record.workload = name.empty() ? "job" : name;
    if (*seconds > 0) record.timing->fit_seconds = *seconds;
    if (record.completed() && *seconds == 0) {
      refuse_line(file_, run.line, "the job took no time", "leave it out");
    }
    const auto gpus = to_integer(value("GPUs")), nodes = to_integer(value("Nodes"));
    if (gpus && *gpus > 0 && *gpus < 10000000) set_replicas(record, static_cast<int>(*gpus));
    if (nodes && *nodes > 0 && *nodes < 10000000) record.layout.nodes = static_cast<int>(*nodes);
    record.layout.replicas_are = "gpus";
    Allocation& allocation = record.provenance.allocation.emplace();
    allocation.job = value("Job ID");
    allocation.cluster = value("Cluster");
    const std::string partition = value("QOS/Partition");
    allocation.partition = partition.substr(partition.find('/') + 1);
    record.provenance.started_at = parse_date(value("Start Time"));
    if (record.gpus.empty()) record.utilization = parse_share(find_in_bar("GPU utilization"));
    finish(content_, to_integer(value("CPU Cores")));
  }

  // "GPU utilization  [|||||   68%]"
  std::string find_in_bar(std::string_view name) const {
    const std::size_t at = file_.text.find(name), end = file_.text.find("%]", at);
    if (at == std::string::npos || end == std::string::npos || end - at > 200) return "";
    const auto words = split_words(std::string_view(file_.text).substr(at, end + 1 - at));
    return std::string(words.back());
  }

  const ForeignFile& file_;
  ImportContent content_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::size_t, std::less<>> gpus_;
  std::string section_;
};

ImportContent read_summary(const ForeignFile& file, const Json& json) {
  const Json& nodes = find_member(json, "nodes");
  if (!nodes.is_object()) {
    refuse_line(file, 1, "the summary has no object \"nodes\"",
                "import the summary of jobstats -j");
  }
  ImportContent content;
  content.tool = "jobstats";
  ImportedRun& run = content.runs.emplace_back();
  RunRecord& record = run.record;
  const auto seconds = number_or_empty(find_member(json, "total_time"));
  if (!seconds || !(*seconds > 0)) {
    refuse_line(file, 1, "the summary has no total_time above 0",
                "import the summary of jobstats -j");
  }
  record.workload = "job";
  record.timing->fit_seconds = *seconds;
  record.layout.replicas_are = "gpus";
  double cores = 0;
  for (const auto& [host, node] : nodes.items()) {
    cores += number_or_empty(find_member(node, "cpus")).value_or(0);
    const Json& utilization = find_member(node, "gpu_utilization");
    if (!utilization.is_object()) continue;
    for (const auto& [index, percent] : utilization.items()) {
      GpuFacts& gpu = record.gpus.emplace_back();
      record.each_rank->push_back({.host = host});
      if (percent.is_number())
        gpu.utilization = parse_share(fmt::format("{}%", percent.get<double>()));
      for (const auto& [key, member] : {std::pair{"gpu_used_memory", &GpuFacts::memory_bytes},
                                        {"gpu_total_memory", &GpuFacts::memory_bytes_total}}) {
        const auto bytes = number_or_empty(find_member(find_member(node, key), index.c_str()));
        if (bytes && *bytes >= 0 && *bytes < 1e18) gpu.*member = static_cast<std::int64_t>(*bytes);
      }
    }
  }
  if (!nodes.empty()) record.layout.nodes = static_cast<int>(nodes.size());
  // MIG instances are counted, but have no utilization.
  const double stated = number_or_empty(find_member(json, "gpus")).value_or(0);
  if (stated < 0 || stated != std::floor(stated)) {
    refuse_line(file, 1, fmt::format("the number of GPUs, {:g}, is not whole", stated),
                "import the summary of jobstats -j");
  }
  const double gpus = stated > 0 ? stated : static_cast<double>(record.gpus.size());
  if (gpus >= 1 && gpus < 1e7) set_replicas(record, static_cast<int>(gpus));
  finish(content, static_cast<std::int64_t>(std::clamp(cores, 0.0, 1e9)));
  return content;
}

ImportContent read_report_or_summary(const ForeignFile& file) {
  if (file.text.find(kTitle) != std::string::npos) return JobstatsReport(file).read();
  const JsonDocument document(file.name, file.text);
  return read_summary(file, document.value());
}

}  // namespace

ImportFormat jobstats_format() {
  return {.name = "jobstats",
          .what = "a report of jobstats",
          .example = "job-*.txt --study jobs --set workload=resnet50",
          .is_one =
              [](std::string_view text) {
                return text.find(kTitle) != text.npos ||
                       (text.find("\"nodes\"") != text.npos &&
                        text.find("\"total_time\"") != text.npos &&
                        (text.find("\"used_memory\"") != text.npos ||
                         text.find("\"gpu_utilization\"") != text.npos ||
                         text.find("\"gpus\"") != text.npos));
              },
          .read = read_report_or_summary};
}

}  // namespace paceline
