#include "analysis/history/history_wording.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/study/comparison.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

bool is_share(HistoryMetric metric) {
  return metric == HistoryMetric::exposed_communication || metric == HistoryMetric::accuracy;
}

// Of a fraction.
int count_digits(double value) {
  return std::abs(value) < 0.1 ? std::max(4, fraction_digits(std::abs(value))) : 3;
}

}  // namespace

std::string change_number(double change, HistoryMetric metric) {
  if (metric_info(metric).is_factor || is_share(metric)) {
    return fmt::format("{:+.{}f}", 100 * change, std::abs(change) < 0.01 ? 2 : 1);
  }
  return fmt::format("{:+.{}f}", change, count_digits(change));
}

std::string unit_of_change(HistoryMetric metric) {
  return metric_info(metric).is_factor ? " %" : is_share(metric) ? " points" : "";
}

std::string change_text(const SeriesHistory& series, double size,
                        const std::optional<Interval>& interval) {
  const HistoryMetric metric = series.series->metric;
  std::string text = change_number(series.change(size), metric) + unit_of_change(metric);
  if (interval) {
    text += fmt::format(" [{}, {}]", change_number(series.change(interval->low), metric),
                        change_number(series.change(interval->high), metric));
  }
  return text;
}

std::string history_value_text(double value, HistoryMetric metric) {
  switch (metric) {
    case HistoryMetric::time:
      return value < 1000 ? fmt::format("{:.4g} s", value) : format_seconds(value);
    case HistoryMetric::throughput:
      return format_rate(value) + " samples/s";
    case HistoryMetric::speed_up:
      return fmt::format("{:.2f}", value);
    case HistoryMetric::serial_fraction:
      return fmt::format("{:.{}f}", value, count_digits(value));
    case HistoryMetric::energy:
      return fmt::format("{:.4g} J", value);
    case HistoryMetric::efficiency:
    case HistoryMetric::exposed_communication:
    case HistoryMetric::accuracy:
      return fmt::format("{:.{}f} %", 100 * value, metric == HistoryMetric::accuracy ? 2 : 1);
  }
  return "";
}

}  // namespace paceline
