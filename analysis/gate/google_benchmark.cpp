#include "analysis/gate/google_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool looks_like_one(const fs::path& file) {
  if (file.extension() != ".json") return false;
  try {
    const JsonDocument document = read_json(file);
    const Json& json = document.value();
    return json.is_object() && json.contains("benchmarks") && json["benchmarks"].is_array();
  } catch (const Error&) {
    return false;  // who opens it as a record will say what is wrong
  }
}

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

class Reader {
 public:
  Reader(const std::string& side, const fs::path& file) : document_(read_json(file)) {
    side_.name = side;
    const Json& json = document_.value();
    session_ = file.string();
    std::error_code ignored;
    side_.runs.insert(fs::weakly_canonical(file, ignored).string());
    if (!json.contains("context") || !json["context"].is_object()) return;
    const Json& context = json["context"];
    session_ += " " + text_in(context, "date");
    // Our own export names the machine; of others only the host is known.
    if (const std::string machine = text_in(context, "machine"); !machine.empty()) {
      side_.machines.insert(machine);
    } else if (const std::string host = text_in(context, "host_name"); !host.empty()) {
      side_.machines.insert("host " + host);
    }
    if (context.contains("num_cpus") && context["num_cpus"].is_number_integer()) {
      side_.machines.insert(fmt::format("{} CPUs", context["num_cpus"].get<int>()));
    }
    const std::string type = text_in(context, "library_build_type");
    if (!type.empty()) side_.builds.insert(type);
  }

  Side read() {
    side_.sessions.insert(session_);
    const Json& json = document_.value();
    if (!json.contains("benchmarks") || !json["benchmarks"].is_array()) {
      throw Error(ErrorKind::input, "the file has no list of benchmarks", document_.where(""),
                  "make the file again with --benchmark_format=json");
    }
    const Json& benchmarks = json["benchmarks"];
    for (const Json& row : benchmarks) {
      if (row.is_object()) names_.insert(text_in(row, "name"));
      if (!row.is_object() || !row.contains("stats") || row.contains("real_time")) continue;
      throw Error(ErrorKind::input, "the file is pytest-benchmark's JSON, not Google Benchmark's",
                  document_.name(), "give a file of --benchmark_out_format=json, or records");
    }
    for (std::size_t i = 0; i < benchmarks.size(); ++i) {
      add(benchmarks[i], document_.where(fmt::format("/benchmarks/{}", i)));
    }
    if (side_.subjects.empty() && aggregates_ > 0) {
      throw Error(ErrorKind::input, "the file has only aggregates, no single runs",
                  document_.name(), "run it again without --benchmark_report_aggregates_only");
    }
    return std::move(side_);
  }

 private:
  // Rows of versions before 1.4 do not say what they are; their names do.
  bool is_aggregate(const Json& row) const {
    if (row.contains("run_type")) return text_in(row, "run_type") == "aggregate";
    const std::string name = text_in(row, "name");
    const std::string stem = name.substr(0, name.rfind('_'));
    const std::string ending = name.substr(stem.size());
    if (ending == "_BigO" || ending == "_RMS") return true;
    if (ending != "_mean" && ending != "_median" && ending != "_stddev" && ending != "_cv") {
      return false;
    }
    return names_.contains(stem) ||
           (names_.contains(stem + "_mean") && names_.contains(stem + "_stddev"));
  }

  void add(const Json& row, const std::string& where) {
    if (!row.is_object() || text_in(row, "name").empty()) {
      throw Error(ErrorKind::input, "the benchmark has no name", where, "make the file again");
    }
    if (is_aggregate(row)) {
      ++aggregates_;
      return;
    }
    const std::string name =
        text_in(row, "run_name").empty() ? text_in(row, "name") : text_in(row, "run_name");
    Subject& subject = subject_of(name);
    if (row.contains("error_occurred") && row["error_occurred"] == Json(true)) {
      ++subject.not_ended;
      ++subject.lost;
      subject.why = text_in(row, "error_message");
      if (subject.why.empty()) subject.why = "it reported an error";
      return;
    }
    if (row.contains("skipped") && row["skipped"] == Json(true)) {
      ++subject.left_out;
      return;
    }
    if (row.contains("real_time") && row["real_time"] == 0) {
      ++subject.left_out;
      side_.notes.push_back(
          fmt::format("{}: benchmark \"{}\" took no time ({}): left out", side_.name, name, where));
      return;
    }
    ++subject.runs;
    auto& samples = subject.samples[Quantity::time];
    samples.push_back({seconds_of(row, name, where), session_, 0});
  }

  Subject& subject_of(const std::string& name) {
    const auto [it, first] = index_.emplace(name, side_.subjects.size());
    if (first) {
      side_.subjects.emplace_back();
      side_.subjects.back().name = name;
    }
    return side_.subjects[it->second];
  }

  static double seconds_of(const Json& row, const std::string& name, const std::string& where) {
    static const std::map<std::string, double> kUnits = {
        {"", 1e-9}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const auto fail = [&](const std::string& what) -> Error {
      return Error(ErrorKind::input, fmt::format("benchmark \"{}\" {}", name, what), where,
                   "run it again, or leave it out");
    };
    if (!row.contains("real_time") || !row["real_time"].is_number()) throw fail("has no real_time");
    const auto unit = kUnits.find(text_in(row, "time_unit"));
    if (unit == kUnits.end() || (row.contains("time_unit") && !row["time_unit"].is_string()))
      throw fail("has unknown time_unit " + json_text(row["time_unit"]));
    const double seconds = row["real_time"].get<double>() * unit->second;
    if (!(seconds > 0) || !std::isfinite(seconds))
      throw fail("has a real_time that is not positive");
    return seconds;
  }

  JsonDocument document_;
  Side side_;
  std::string session_;
  std::map<std::string, std::size_t> index_;
  std::set<std::string> names_;  // of all rows
  std::size_t aggregates_ = 0;
};

}  // namespace

std::vector<fs::path> google_benchmark_files(const fs::path& place) {
  std::error_code ignored;
  if (fs::is_regular_file(place, ignored)) {
    return looks_like_one(place) ? std::vector{place} : std::vector<fs::path>{};
  }
  std::vector<fs::path> files;
  if (!fs::is_directory(place, ignored)) return files;
  for (const auto& entry : fs::directory_iterator(place, ignored)) {
    if (entry.is_regular_file(ignored) && looks_like_one(entry.path()))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Side read_google_benchmark(const std::string& side, const fs::path& file) {
  return Reader(side, file).read();
}

}  // namespace paceline
