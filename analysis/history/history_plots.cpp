#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/history/history.h"
#include "analysis/study/labels.h"

namespace paceline {

namespace {

constexpr std::size_t kMostPictures = 6, kMostTics = 7;
constexpr double kManyDays = 100;

std::vector<std::size_t> shown_series(const StudyHistory& study) {
  std::vector<std::size_t> shown;
  for (const HistoryEvent& event : study.events) {
    const std::size_t lead = event.members.front().series;
    if (std::ranges::find(shown, lead) == shown.end()) shown.push_back(lead);
  }
  if (shown.empty()) {
    const auto most = std::ranges::max_element(
        study.series, {}, [](const SeriesHistory& each) { return each.series->sessions.size(); });
    shown.push_back(static_cast<std::size_t>(most - study.series.begin()));
  }
  shown.resize(std::min(shown.size(), kMostPictures));
  return shown;
}

// First days of months, or days where there are few.
std::vector<Tic> make_tics(double first, double last) {
  std::vector<Tic> tics;
  if (last - first < kManyDays) {
    const double step = std::max(1.0, std::ceil((last - first) / static_cast<double>(kMostTics)));
    for (double day = std::floor(first); day <= last; day += step) {
      tics.push_back({day, date_text(day).substr(5)});
    }
    return tics;
  }
  using namespace std::chrono;
  const int months =
      static_cast<int>(std::ceil((last - first) / 30.4 / static_cast<double>(kMostTics)));
  const year_month_day from{sys_days(days(static_cast<int>(std::floor(first))))};
  for (year_month month = from.year() / from.month();; month += std::chrono::months(months)) {
    const double day = sys_days(month / 1).time_since_epoch().count();
    if (day > last) return tics;
    if (day >= first) tics.push_back({day, date_text(day).substr(0, 7)});
  }
}

// Shares are shown in percent.
double shown_value(double value, HistoryMetric metric) {
  using enum HistoryMetric;
  return metric == efficiency || metric == exposed_communication || metric == accuracy ? 100 * value
                                                                                       : value;
}

std::string axis_title(const HistorySeries& series) {
  const HistoryMetric metric = series.metric;
  switch (metric) {
    case HistoryMetric::time:
      return "seconds";
    case HistoryMetric::throughput:
    case HistoryMetric::result:
      return series.unit.long_rate();
    case HistoryMetric::energy:
      return "joules";
    case HistoryMetric::slowness:
      return "times as slow as those like it";
    case HistoryMetric::speed_up:
    case HistoryMetric::serial_fraction:
      return metric_info(metric).heading;
    default:
      return fmt::format("{}, %", metric_info(metric).heading);
  }
}

Plot make_plot(const StudyHistory& study, const SeriesHistory& each) {
  const HistorySeries& series = *each.series;
  const auto shown = [&](double scaled) { return shown_value(each.value(scaled), series.metric); };
  Timeline timeline;
  for (const HistorySession& session : series.sessions) {
    timeline.points.push_back(
        {session.day, shown_value(session.value, series.metric), {}, {}, false, {}});
  }
  for (const std::size_t i : each.found.outlying) timeline.points[i].ringed = true;
  for (const SeriesLevel& level : each.found.levels) {
    Timeline::Level made{series.sessions[level.begin].day,
                         series.sessions[level.end - 1].day,
                         shown(level.mean),
                         {}};
    if (level.interval) made.interval = transformed(*level.interval, shown);
    timeline.levels.push_back(made);
  }
  for (const LevelShift& shift : each.found.shifts) {
    const double change = each.change(shift.size);
    timeline.shifts.push_back(
        {(series.sessions[shift.at - 1].day + series.sessions[shift.at].day) / 2,
         fmt::format("{} {}", date_text(series.sessions[shift.at].day),
                     metric_info(series.metric).is_factor ? fmt::format("{:+.1f} %", 100 * change)
                                                          : fmt::format("{:+.2g}", change))});
  }
  timeline.x_tics = make_tics(series.sessions.front().day, series.sessions.back().day);
  std::string heading = metric_info(series.metric).heading;
  heading[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(heading[0])));
  return {.title = fmt::format("{}{}: {}", heading, of_studies(study.study.studies), series.point),
          .subtitle = study.study.title + (timeline.shifts.empty() ? "; no level shift" : ""),
          .x_label = "date of the session",
          .y_label = axis_title(series),
          .body = std::move(timeline)};
}

}  // namespace

std::vector<Plot> history_plots(const StudyHistory& study, std::size_t first_number) {
  std::vector<Plot> plots;
  for (const std::size_t i : shown_series(study)) {
    plots.push_back(make_plot(study, study.series[i]));
    plots.back().name = fmt::format("history-{}", first_number++);
  }
  return plots;
}

}  // namespace paceline
