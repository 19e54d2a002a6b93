#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/gate/render.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "results/import/formats.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool looks_like_one(const fs::path& file) {
  if (file.extension() != ".json") return false;
  try {
    return is_benchmark_json(read_json(file).value());
  } catch (const Error&) {
    return false;  // who opens it as a record will say what is wrong
  }
}

class BenchmarkSide {
 public:
  BenchmarkSide(const std::string& name, const fs::path& file)
      : file_(read_benchmark_file(read_json(file))), session_(file.string()) {
    side_.name = name;
    std::error_code ignored;
    side_.runs.insert(fs::weakly_canonical(file, ignored).string());
    if (!file_.date.empty()) session_ += " " + file_.date;
    if (!file_.host.empty()) side_.machines.insert("host " + file_.host);
    if (file_.cpus) side_.machines.insert(fmt::format("{} CPUs", *file_.cpus));
    if (!file_.build_type.empty()) side_.builds.insert(file_.build_type);
    if (file_.build_type == "debug") {
      side_.notes.push_back(
          fmt::format("{}: a debug build of Google Benchmark made {}; measure a release build",
                      name, file.string()));
    }
  }

  Side make() {
    for (const BenchmarkRow& row : file_.rows) add(row);
    return std::move(side_);
  }

 private:
  void add(const BenchmarkRow& row) {
    Subject& subject = subject_at(row.name);
    switch (row.outcome) {
      case BenchmarkRow::Outcome::failed:
        ++subject.not_ended;
        ++subject.lost;
        subject.why = row.error;
        return;
      case BenchmarkRow::Outcome::skipped:
        ++subject.left_out;
        return;
      case BenchmarkRow::Outcome::took_no_time:
        ++subject.left_out;
        side_.notes.push_back(fmt::format("{}: benchmark \"{}\" took no time ({}): left out",
                                          side_.name, row.name, row.where));
        return;
      case BenchmarkRow::Outcome::timed:
        ++subject.runs;
        subject.samples[Quantity::time].push_back({row.seconds, session_, 0});
    }
  }

  Subject& subject_at(const std::string& name) {
    const auto [it, first] = index_.emplace(name, side_.subjects.size());
    if (first) {
      side_.subjects.emplace_back();
      side_.subjects.back().name = name;
    }
    return side_.subjects[it->second];
  }

  BenchmarkFile file_;
  Side side_;
  std::string session_;
  std::map<std::string, std::size_t> index_;
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
  return BenchmarkSide(side, file).make();
}

}  // namespace paceline
