// Reports of jobstats (github.com/PrincetonUniversity/jobstats), as text or as JSON (jobstats -j):
// a Slurm job with its run time, and utilization and memory of each GPU. Its GB are 2^30 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::size_t kMostGpus = 128;  // that fit into a record
constexpr char kTitle[] = "Slurm Job Statistics";

// "1-02:03:04" or "18:41:56"; empty: it is none.
std::optional<double> seconds_of_clock(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != text.npos) {
    const auto number = to_integer(text.substr(0, dash));
    if (!number || *number < 0) return std::nullopt;
    days = static_cast<double>(*number);
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  for (const std::string& part : parts) {
    const auto number = to_integer(part);
    if (!number || *number < 0 || *number > 59 + (&part == &parts.front() ? 1000000 : 0)) {
      return std::nullopt;
    }
    seconds = 60 * seconds + static_cast<double>(*number);
  }
  return seconds + 86400 * days;
}

// "Fri Mar 4, 2022 at 1:56 AM" is "2022-03-04T01:56:00", the cluster's time; "" where it is not so.
std::string parse_date(std::string_view text) {
  static const std::vector<std::string> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto words = split_words(text);
  if (words.size() != 7 || words[4] != "at") return "";
  const auto month = std::find(kMonths.begin(), kMonths.end(), words[1]);
  const auto day = to_integer(words[2].substr(0, words[2].find(','))), year = to_integer(words[3]);
  const std::size_t colon = words[5].find(':');
  const auto hour = to_integer(words[5].substr(0, colon));
  const auto minute =
      colon == words[5].npos ? std::nullopt : to_integer(words[5].substr(colon + 1));
  if (month == kMonths.end() || !day || !year || !hour || !minute) return "";
  return fmt::format("{}-{:02}-{:02}T{:02}:{:02}:00", *year, month - kMonths.begin() + 1, *day,
                     *hour % 12 + (words[6] == "PM" ? 12 : 0), *minute);
}

// "26.5GB" in bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  double unit = 1;
  for (const auto& [suffix, bytes] : {std::pair{"TB", 1099511627776.0},
                                      {"GB", 1073741824.0},
                                      {"MB", 1048576.0},
                                      {"KB", 1024.0},
                                      {"B", 1.0}}) {
    if (!text.ends_with(suffix)) continue;
    unit = bytes;
    text.remove_suffix(std::string_view(suffix).size());
    break;
  }
  const auto number = to_real(text);
  if (!number || *number < 0 || *number * unit > 1e18) return std::nullopt;
  return static_cast<std::int64_t>(*number * unit);
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
    content.notes.push_back(fmt::format("job{} has {} GPUs, but utilization and memory of {}",
                                        job.empty() ? "" : " " + job, stated, record.gpus.size()));
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
      content_.runs.back().record.provenance.hosts.emplace_back(text.substr(0, open));
    }
    GpuFacts& gpu = gpus[it->second];
    const std::string_view value = split_words(text.substr(end + 3)).empty()
                                       ? std::string_view()
                                       : split_words(text.substr(end + 3)).front();
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
    const auto seconds = seconds_of_clock(split_words(value("Run Time")).front());
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
    if (*seconds > 0) record.timing.fit_seconds = *seconds;
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
    if (record.gpus.empty()) {
      const std::string overall = value_of_bar("GPU utilization");
      record.utilization = parse_share(overall);
    }
    finish(content_, to_integer(value("CPU Cores")));
  }

  // "GPU utilization  [|||||   68%]"
  std::string value_of_bar(std::string_view name) const {
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

std::optional<double> number_in(const Json& json, const std::string& key) {
  const auto it = json.find(key);
  if (!json.is_object() || it == json.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

ImportContent read_summary(const ForeignFile& file) {
  const JsonDocument document(file.name, file.text);
  const Json& json = document.value();
  ImportContent content;
  content.tool = "jobstats";
  ImportedRun& run = content.runs.emplace_back();
  RunRecord& record = run.record;
  const auto seconds = number_in(json, "total_time");
  if (!seconds || !(*seconds > 0)) {
    refuse_line(file, 1, "the summary has no total_time above 0",
                "import the summary of jobstats -j");
  }
  record.workload = "job";
  record.timing.fit_seconds = *seconds;
  record.layout.replicas_are = "gpus";
  double cores = 0;
  for (const auto& [host, node] : json.at("nodes").items()) {
    cores += number_in(node, "cpus").value_or(0);
    if (!node.contains("gpu_utilization") || !node["gpu_utilization"].is_object()) continue;
    for (const auto& [index, percent] : node["gpu_utilization"].items()) {
      GpuFacts& gpu = record.gpus.emplace_back();
      record.provenance.hosts.push_back(host);
      if (percent.is_number())
        gpu.utilization = parse_share(fmt::format("{}%", percent.get<double>()));
      for (const auto& [key, member] : {std::pair{"gpu_used_memory", &GpuFacts::memory_bytes},
                                        {"gpu_total_memory", &GpuFacts::memory_bytes_total}}) {
        const auto bytes = node.contains(key) ? number_in(node[key], index) : std::nullopt;
        if (bytes && *bytes >= 0 && *bytes < 1e18) gpu.*member = static_cast<std::int64_t>(*bytes);
      }
    }
  }
  if (!json["nodes"].empty()) record.layout.nodes = static_cast<int>(json["nodes"].size());
  // MIG instances are counted, but have no utilization.
  const double stated = number_in(json, "gpus").value_or(0);
  const double gpus = std::max(stated, static_cast<double>(record.gpus.size()));
  if (gpus >= 1 && gpus < 1e7) set_replicas(record, static_cast<int>(gpus));
  finish(content, static_cast<std::int64_t>(std::clamp(cores, 0.0, 1e9)));
  return content;
}

}  // namespace

bool is_jobstats(std::string_view text) {
  if (text.find(kTitle) != text.npos) return true;
  return text.find("\"nodes\"") != text.npos && text.find("\"total_time\"") != text.npos &&
         text.find("\"used_memory\"") != text.npos;
}

ImportContent read_jobstats(const ForeignFile& file) {
  if (file.text.find(kTitle) != std::string::npos) return JobstatsReport(file).read();
  const JsonDocument document(file.name, file.text);
  if (!document.value().is_object() || !document.value().contains("nodes") ||
      !document.value()["nodes"].is_object()) {
    refuse_line(file, 1, "the summary has no object \"nodes\"",
                "import the summary of jobstats -j");
  }
  return read_summary(file);
}

}  // namespace paceline
