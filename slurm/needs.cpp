#include "slurm/needs.h"

#include <algorithm>
#include <cmath>

#include "results/run_record.h"

namespace paceline {

namespace {

constexpr double kStartSeconds = 120, kMostMinutes = 1e6;
constexpr double kTaskBytes = 0.5e9, kMemoryMargin = 1.5;
constexpr double kSlurmsM = 1 << 20, kSlurmsG = 1 << 30;

bool same_layout(const Layout& a, const Layout& b) {
  return a.nodes == b.nodes && a.ntasks == b.ntasks && a.cpus_per_task == b.cpus_per_task &&
         a.gpus == b.gpus && a.replicas_are_cores == b.replicas_are_cores;
}

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

void Need::add_minutes(int more, const Site& site) {
  minutes += more;
  is_cut = site.most_minutes > 0 && minutes > site.most_minutes;
  if (is_cut) minutes = site.most_minutes;
}

const char* limit_key(const Site& site, const Need& need) {
  if (site.most_minutes > 0 && need.minutes >= site.most_minutes) return kMostMinutesKey;
  return need.time_is_known ? "time.margin" : "time.minutes";
}

Needs::Needs(const Site& site, const std::vector<PlannedPoint>& points, const StoreContent& store,
             std::function<double(std::size_t)> planned_bytes)
    : site_(site), points_(points), planned_bytes_(std::move(planned_bytes)) {
  for (const Record& record : store.records) {
    if (record->completed() && record->kind == "measured") completed_.push_back(&record);
  }
}

void Needs::timed_out(std::size_t point, int minutes) {
  int& known = timed_out_[point];
  known = std::max(known, minutes);
}

double Needs::slowest_seconds(const PlannedPoint& planned) const {
  double same_point = 0, same_shape = 0;
  for (const Record* record : completed_) {
    const double seconds = (*record)->whole_seconds();
    if ((*record)->point == planned.point.text()) same_point = std::max(same_point, seconds);
    if (same_layout((*record)->task_layout(), planned.layout))
      same_shape = std::max(same_shape, seconds);
  }
  return same_point > 0 ? same_point : same_shape;
}

void Needs::expect_published(const std::vector<Record>& rows, const std::string& workload,
                             std::function<std::optional<double>(std::size_t)> epochs) {
  epochs_ = std::move(epochs);
  for (const Record& row : rows) {
    const bool same = row->provenance.same_work_as == workload;
    if (same && row->fit_seconds()) published_.push_back(&row);
  }
}

double Needs::published_seconds(std::size_t point) const {
  const Layout& layout = points_[point].layout;
  const std::optional<double> epochs = epochs_ ? epochs_(point) : std::nullopt;
  if (!epochs || layout.replicas_are_cores) return 0;
  Mean same_cpus, same_size;
  for (const Record* row : published_) {
    const Layout there = (*row)->task_layout();
    const auto its_epochs = (*row)->parameters.real("epochs");
    if (there.gpus != layout.gpus || there.nodes != layout.nodes || !its_epochs) continue;
    const double seconds = *(*row)->fit_seconds() * *epochs / *its_epochs;
    same_size.add(seconds);
    const bool same = there.ntasks * there.cpus_per_task == layout.ntasks * layout.cpus_per_task;
    if (same) same_cpus.add(seconds);
  }
  return same_cpus.value() > 0 ? same_cpus.value() : same_size.value();
}

void Needs::expect(Need& need, std::size_t point) const {
  const PlannedPoint& planned = points_[point];
  Mean same_point, same_shape;
  for (const Record* record : completed_) {
    const double seconds = (*record)->whole_seconds();
    if ((*record)->point == planned.point.text()) same_point.add(seconds);
    if (same_layout((*record)->task_layout(), planned.layout)) same_shape.add(seconds);
  }
  const double recorded = same_point.value() > 0 ? same_point.value() : same_shape.value();
  const double limit = 60.0 * need.minutes;
  const double expected = recorded > 0 ? recorded : published_seconds(point);
  need.expected_by = recorded > 0   ? Expectation::records
                     : expected > 0 ? Expectation::published
                                    : Expectation::none;
  need.expected_seconds = expected > 0 ? std::min(expected, limit) : limit;
}

double Needs::replica_bytes(std::size_t point) const {
  const PlannedPoint& planned = points_[point];
  if (!planned.layout.replicas_are_cores) return site_.gb_per_replica * kSlurmsG;
  double bytes = 0;
  for (const Record* record : completed_) {
    if ((*record)->point != planned.point.text()) continue;
    bytes = std::max(bytes, static_cast<double>((*record)->plan.memory_bytes.total.value_or(0)));
  }
  if (bytes == 0 && planned_bytes_) bytes = planned_bytes_(point);
  return bytes > 0 ? bytes * kMemoryMargin : site_.gb_per_replica * kSlurmsG;
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
  need.add_minutes(0, site_);
  expect(need, point);
  if (site_.memory_form == MemoryForm::none) return need;
  const double cache =
      static_cast<double>(planned.parameters.integer("cache_mb").value_or(0)) * (1 << 20);
  const double replicas = static_cast<double>(layout.gpus) / layout.nodes;
  const double tasks = static_cast<double>(layout.ntasks) / layout.nodes;
  const double of_tasks = layout.replicas_are_cores ? tasks * kTaskBytes : 0;
  const double bytes = replicas * replica_bytes(point) + of_tasks + cache;
  need.memory_mb = static_cast<std::int64_t>(std::ceil(bytes / kSlurmsM));
  return need;
}

}  // namespace paceline
