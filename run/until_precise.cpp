#include "run/until_precise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/evidence/evidence.h"
#include "analysis/statistics/anytime.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kSecondsPerHour = 3600;

std::optional<double> find_cost(const Record& record) {
  Run run = make_run(record);
  judge(run, EvidencePolicy::tables());
  if (run.effect != Effect::none) return std::nullopt;
  return run.cost();
}

// How many more values are likely to narrow the interval to `share`, if they scatter as these do;
// at most as many again.
std::size_t more_needed(const Estimate& mean, double share) {
  const double half = std::log(mean.interval->high / mean.value);
  const double spread =
      half / anytime_quantile(mean.count, kConfidence) * std::sqrt(static_cast<double>(mean.count));
  for (std::size_t more = 1; more < mean.count; ++more) {
    const auto count = static_cast<double>(mean.count + more);
    const double reached =
        anytime_quantile(mean.count + more, kConfidence) * spread / std::sqrt(count);
    if (std::expm1(reached) <= share) return more;
  }
  return mean.count;
}

std::string percent(double share) {
  return "±" + decimal(share * 100, 2) + " %";
}

}  // namespace

PointPrecision UntilPrecise::look_at(const std::vector<const RunStatus*>& runs,
                                     const std::map<std::string, const Record*>& records) const {
  PointPrecision point;
  std::vector<double> costs;
  for (const RunStatus* status : runs) {
    const bool is_done = status->state == RunState::done;
    point.done += is_done ? 1 : 0;
    point.failed += !is_done && tried_.contains({status->run.point, status->run.repeat}) ? 1 : 0;
    if (!is_done) continue;
    if (const auto cost = find_cost(*records.at(status->why))) costs.push_back(*cost);
  }
  point.counted = costs.size();
  const auto first = static_cast<std::size_t>(plan_->spec.repeats);
  point.cannot_be_precise = costs.empty() && point.done + point.failed >= first;
  if (point.cannot_be_precise) return point;
  if (costs.size() < first) {
    point.wanted = first - costs.size();
    return point;
  }
  const Estimate mean = geometric_mean(costs, Stopping::by_results);
  if (mean.interval) point.reached = mean.interval->high / mean.value - 1;
  point.is_precise = point.reached && *point.reached <= precision_.share;
  if (point.is_precise) return point;
  point.wanted = precision_.in_waves && mean.interval ? more_needed(mean, precision_.share) : 1;
  return point;
}

std::vector<RunStatus> UntilPrecise::next(const std::vector<RunStatus>& inventory,
                                          const StoreContent& store) {
  std::map<std::string, const Record*> records;
  for (const Record& record : store.records) records[record.where()] = &record;
  const auto& points = plan_->expansion.points;
  std::vector<std::vector<const RunStatus*>> runs(points.size());
  for (const RunStatus& status : inventory) {
    runs[status.run.point].push_back(&status);
    if (status.state == RunState::done) {
      double& longest = longest_[status.run.point];
      longest = std::max(longest, status.seconds);
    }
  }
  points_.clear();
  for (const auto& point_runs : runs) points_.push_back(look_at(point_runs, records));
  std::set<std::pair<std::size_t, int>> chosen;
  is_over_budget_ = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].cannot_run.empty()) continue;
    auto point_runs = runs[i];
    std::ranges::sort(point_runs, {}, [](const auto* each) { return each->run.repeat; });
    for (const RunStatus* status : point_runs) {
      const std::pair key(i, status->run.repeat);
      if (points_[i].wanted == 0) break;
      if (status->state == RunState::done || tried_.contains(key)) continue;
      if (!is_affordable(status->run)) {
        is_over_budget_ = true;
        break;
      }
      chosen.insert(key);
      --points_[i].wanted;
    }
  }
  chosen_ = chosen.size();
  const auto is_chosen = [&](const RunStatus& status) {
    return chosen.contains({status.run.point, status.run.repeat});
  };
  return mapped_if(inventory, is_chosen, std::identity());
}

double UntilPrecise::hours(std::size_t point, double seconds) const {
  const Layout& layout = plan_->expansion.points[point].layout;
  const double units = layout.replicas_are_cores
                           ? static_cast<double>(layout.ntasks) * layout.cpus_per_task
                           : static_cast<double>(layout.gpus);
  return units * seconds / kSecondsPerHour;
}

// The cost of a point that never ran is unknown: it may start while there is budget left.
bool UntilPrecise::is_affordable(const ScheduledRun& run) const {
  if (precision_.max_hours <= 0) return true;
  const auto longest = longest_.find(run.point);
  if (longest == longest_.end()) return spent_ < precision_.max_hours;
  return spent_ + hours(run.point, longest->second) <= precision_.max_hours;
}

void UntilPrecise::took(const ScheduledRun& run, double seconds) {
  tried_.emplace(run.point, run.repeat);
  spent_ += hours(run.point, seconds);
  double& longest = longest_[run.point];
  longest = std::max(longest, seconds);
}

std::vector<std::string> UntilPrecise::lines() const {
  std::size_t precise = 0, runs = 0, most = 0;
  std::vector<std::string> lines, others;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const PointPrecision& point = points_[i];
    precise += point.is_precise ? 1 : 0;
    runs += point.counted;
    most = std::max(most, point.counted);
    const bool is_submitted = precision_.in_waves && point.counted == 0 && !point.cannot_be_precise;
    if (is_submitted || point.is_precise || !plan_->expansion.points[i].cannot_run.empty())
      continue;
    others.push_back(fmt::format(
        "not precise: {}: {} after {}{}", plan_->expansion.points[i].point.text(),
        point.reached ? percent(*point.reached) : "no interval", counted(point.counted, "run"),
        point.cannot_be_precise ? ", as none of its runs counts" : ""));
  }
  lines.push_back(fmt::format("precision: {} of {} within {} (95 %, anytime-valid) after {}",
                              precise, counted(points_.size(), "point"), percent(precision_.share),
                              counted(runs, "run")));
  if (precise == points_.size() && runs < most * points_.size()) {
    lines.back() +=
        fmt::format("; the same number for every point would be {}", most * points_.size());
  }
  if (is_over_budget_) {
    const bool cores = plan_->expansion.points.front().layout.replicas_are_cores;
    others.push_back(
        fmt::format("the budget ends it: {:.3g} of {:g} {}-hours are spent, and the next run would "
                    "exceed it",
                    spent_, precision_.max_hours, cores ? "core" : "GPU"));
  }
  if (precision_.in_waves && chosen_ > 0) {
    lines.emplace_back(
        "this wave has the runs that are likely to be needed; when they ended, submit again");
  }
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < others.size() && i < kShown; ++i) lines.push_back(others[i]);
  if (others.size() > kShown) {
    lines.push_back(fmt::format("and {} more", others.size() - kShown));
  }
  return lines;
}

void check_budget_kind(const StudyPlan& plan, bool gpu_hours) {
  for (const PlannedPoint& planned : plan.expansion.points) {
    if (planned.layout.replicas_are_cores != gpu_hours) continue;
    throw usage_error(
        fmt::format("{} runs on {}", planned.point.text(), gpu_hours ? "CPUs" : "GPUs"),
        gpu_hours ? "--max-gpu-hours" : "--max-core-hours",
        gpu_hours ? "limit it by --max-core-hours" : "limit it by --max-gpu-hours");
  }
}

}  // namespace paceline
