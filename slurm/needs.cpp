#include "slurm/needs.h"

#include <algorithm>
#include <cmath>

namespace paceline {

namespace {

constexpr double kStartSeconds = 120, kMostMinutes = 1e6;
constexpr double kTaskBytes = 0.5e9, kMemoryMargin = 1.5;

bool same_layout(const Layout& a, const Layout& b) {
  return a.nodes == b.nodes && a.ntasks == b.ntasks && a.cpus_per_task == b.cpus_per_task &&
         a.gpus == b.gpus && a.replicas_are_cores == b.replicas_are_cores;
}

double seconds_of(const Record& record) {
  double seconds = 0;
  for (const char* part : {"fit_seconds", "setup_seconds", "evaluation_seconds"}) {
    seconds += record.number(std::string("/timing/") + part).value_or(0);
  }
  return seconds;
}

}  // namespace

Needs::Needs(const Site& site, const std::vector<PlannedPoint>& points, const StoreContent& store,
             std::function<double(std::size_t)> planned_bytes)
    : site_(site), points_(points), planned_bytes_(std::move(planned_bytes)) {
  for (const Record& record : store.records) {
    if (record.completed() && record.kind() == "measured") completed_.push_back(&record);
  }
}

void Needs::timed_out(std::size_t point, int minutes) {
  int& known = timed_out_[point];
  known = std::max(known, minutes);
}

double Needs::slowest_seconds(const PlannedPoint& planned) const {
  double same_point = 0, same_shape = 0;
  for (const Record* record : completed_) {
    const double seconds = seconds_of(*record);
    if (record->point() == planned.point.text()) same_point = std::max(same_point, seconds);
    if (same_layout(record->layout(), planned.layout)) same_shape = std::max(same_shape, seconds);
  }
  return same_point > 0 ? same_point : same_shape;
}

double Needs::replica_bytes(std::size_t point) const {
  const PlannedPoint& planned = points_[point];
  if (!planned.layout.replicas_are_cores) return site_.gb_per_replica * 1e9;
  double bytes = 0;
  for (const Record* record : completed_) {
    if (record->point() != planned.point.text()) continue;
    bytes = std::max(bytes, record->number("/plan/memory_bytes/total").value_or(0));
  }
  if (bytes == 0 && planned_bytes_) bytes = planned_bytes_(point);
  return bytes > 0 ? bytes * kMemoryMargin : site_.gb_per_replica * 1e9;
}

Need Needs::of(std::size_t point) const {
  const PlannedPoint& planned = points_[point];
  const Layout& layout = planned.layout;
  Need need;
  const double seconds = slowest_seconds(planned);
  need.time_is_known = seconds > 0;
  const double minutes = std::ceil((seconds * site_.margin + kStartSeconds) / 60);
  need.minutes =
      need.time_is_known ? static_cast<int>(std::min(minutes, kMostMinutes)) : site_.minutes;
  if (const auto found = timed_out_.find(point); found != timed_out_.end()) {
    need.minutes = std::max(need.minutes, 2 * found->second);
  }
  if (site_.most_minutes > 0) need.minutes = std::min(need.minutes, site_.most_minutes);
  if (site_.memory_form == MemoryForm::none) return need;
  const double cache =
      static_cast<double>(planned.parameters.integer("cache_mb").value_or(0)) * (1 << 20);
  const double replicas = static_cast<double>(layout.gpus) / layout.nodes;
  const double tasks = static_cast<double>(layout.ntasks) / layout.nodes;
  const double bytes = replicas * replica_bytes(point) + tasks * kTaskBytes + cache;
  need.memory_mb = static_cast<std::int64_t>(std::ceil(bytes / 1e6));
  return need;
}

}  // namespace paceline
