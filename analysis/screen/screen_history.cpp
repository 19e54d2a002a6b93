// Screens over time, for the tests of `history`.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/screen/screen.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

// What a rate of it counts.
Unit unit_of_measure(const std::string& measured) {
  if (measured.starts_with("multiply-adds")) return {"operations"};
  return {measured.starts_with(kSmallestSums) ? "sums" : "bytes"};
}

HistorySession make_screen_session(const MachineScreen& screen, double day, double value) {
  HistorySession session{screen.started_at, day, value, 1, 0};
  session.origin = {{"build", screen.version}, {"transport", screen.transport}};
  return session;
}

class ScreensOfBackend {
 public:
  explicit ScreensOfBackend(const std::string& backend) {
    made_.title = "screens, backend " + backend;
  }

  void add(const MachineScreen& screen, double day) {
    const ScreenScores scores = score_screen(screen);
    for (const PartScore& part : scores.parts) {
      add(HistoryMetric::slowness, part.name, part.measured,
          make_screen_session(screen, day, part.times));
    }
    for (const KindLevel& kind : scores.kinds) {
      add(HistoryMetric::throughput, "median of " + kind.of, kind.measured,
          make_screen_session(screen, day, kind.rate));
    }
  }

  HistoryStudy study() {
    std::size_t single = 0;
    for (auto& [key, series] : series_) {
      single += series.sessions.size() == 1 ? 1 : 0;
      if (series.sessions.size() < 2) continue;
      std::ranges::stable_sort(series.sessions, {}, &HistorySession::day);
      made_.series.push_back(std::move(series));
    }
    if (single > 0) {
      made_.notes.push_back(fmt::format("{} of a single screen {} left out",
                                        counted(single, "series"), single == 1 ? "is" : "are"));
    }
    return std::move(made_);
  }

 private:
  void add(HistoryMetric metric, const std::string& part, const std::string& measured,
           HistorySession session) {
    const std::string name = fmt::format("{}: {}", part, measured);
    HistorySeries& series = series_[{metric, name}];
    series.point = name;
    series.metric = metric;
    series.gpus = 0;
    if (metric == HistoryMetric::throughput) series.unit = unit_of_measure(measured);
    series.sessions.push_back(std::move(session));
  }

  HistoryStudy made_;
  std::map<std::pair<HistoryMetric, std::string>, HistorySeries> series_;
};

}  // namespace

std::vector<fs::path> find_screens(const std::vector<std::string>& paths) {
  std::vector<fs::path> found;
  std::set<fs::path> known;  // a folder may be named twice
  std::string without;
  for (const std::string& path : paths) {
    std::vector<fs::path> here;
    std::error_code ignored;
    if (fs::path(path).filename() == kScreenFile) here.emplace_back(path);
    if (path_exists(fs::path(path) / kScreenFile)) here.push_back(fs::path(path) / kScreenFile);
    for (const auto& entry : fs::directory_iterator(path, ignored)) {
      if (path_exists(entry.path() / kScreenFile)) here.push_back(entry.path() / kScreenFile);
    }
    if (here.empty()) without = path;
    for (const fs::path& each : here) {
      if (known.insert(fs::weakly_canonical(each, ignored)).second) found.push_back(each);
    }
  }
  if (found.empty() || without.empty()) return found;
  throw input_error("this is no screen, and others are", without,
                    "name screens alone, or studies alone");
}

std::vector<HistoryStudy> screen_history(const std::vector<MachineScreen>& screens,
                                         std::optional<double> since) {
  std::map<std::string, ScreensOfBackend> by_backend;
  for (const MachineScreen& screen : screens) {
    const std::optional<double> day = parse_day(screen.started_at);
    if (!day || (since && *day < *since)) continue;
    by_backend.try_emplace(screen.backend, screen.backend).first->second.add(screen, *day);
  }
  std::vector<HistoryStudy> studies;
  for (auto& [backend, each] : by_backend) {
    HistoryStudy study = each.study();
    if (!study.series.empty()) studies.push_back(std::move(study));
  }
  if (!studies.empty()) return studies;
  throw input_error("no part is in two dated screens", "the screens named",
                    "name those of several days, with the same backend");
}

}  // namespace paceline
