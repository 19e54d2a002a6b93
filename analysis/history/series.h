// A study over time: one value per session for each point and metric.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

enum class HistoryMetric {
  time,        // fit seconds
  throughput,  // samples per second, or a result of the user's own of which more is better
  result,      // one of which less is better, in its unit
  speed_up,    // against the base of the same session
  efficiency,
  serial_fraction,        // Karp and Flatt's
  exposed_communication,  // share of the step
  energy,                 // joules of training; where work differs, per sample
  accuracy,               // on the test set
  slowness,               // of a screen's part: times as slow as those like it
};

struct HistoryMetricInfo {
  HistoryMetric metric = HistoryMetric::time;
  const char* key = "";  // of --metric and JSON
  const char* heading = "";
  bool is_factor = true;  // logarithms are compared, and changes are shares of the level before
  bool more_is_worse = true;
};
const std::vector<HistoryMetricInfo>& history_metrics();
const HistoryMetricInfo& metric_info(HistoryMetric metric);
HistoryMetric parse_history_metric(const std::string& key);  // throws usage

struct HistorySession {
  std::string name;  // of the session
  double day = 0;    // of its first run, since 1970-01-01, UTC
  double value = 0;  // geometric mean over its runs; shares: arithmetic
  std::size_t runs = 0, busy = 0;
  std::vector<std::pair<std::string, std::string>> origin = {};  // of its first run, without hosts
  std::set<std::string> hosts = {};
  double due_to_nodes = 0;  // of the scaled value, against the usual nodes
};

// How sessions on some nodes differ from those on the usual ones.
struct NodeDifference {
  std::string nodes, usual;
  Difference difference;  // of scaled values
  std::size_t sessions = 0;
};

struct HistorySeries {
  std::string point;  // what distinguishes it from the study's others
  HistoryMetric metric = HistoryMetric::time;
  int gpus = 1;  // replicas; 0: of a screen's part
  std::optional<int> nodes;
  std::vector<HistorySession> sessions;  // by day
  Unit unit;                             // of throughput
  std::vector<NodeDifference> node_differences =
      {};  // beyond noise, and taken out of scaled_values()

  std::vector<double> days() const;
  // On the scale on which noise adds: logarithms of factors.
  std::vector<double> scaled_values() const;
};

struct HistoryStudy {
  std::string title;
  std::set<std::string> studies;  // see study_names()
  std::vector<HistorySeries> series;
  std::vector<std::string> warnings, notes;
};

struct HistoryOptions {
  std::vector<HistoryMetric> metrics;  // empty: time (or else throughput), serial fraction (or else
                                       // efficiency), and the others that records state
  std::vector<Selection> points;
  std::optional<double> since;  // day
};

// Only sessions whose day is known; others are counted in the notes. The software of a published
// row is a property of its session, not of its point. Series of a single session are left out.
// Throws usage or input if nothing remains.
std::vector<HistoryStudy> make_history(StoreContent content, const HistoryOptions& options);

// Finds what is due to nodes, where these change to and fro often enough (changed.cpp).
void take_out_nodes(HistorySeries& series);

// "2026-11-21", "2026-11", "20261121T051500-3f9a" or "2026-11-21T05:15:00Z" as days since
// 1970-01-01. Empty: not a date.
std::optional<double> parse_day(std::string_view text);
std::string date_text(double day);  // "2026-11-21"

}  // namespace paceline
