#include "analysis/explain/loss_plot.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {

namespace {

constexpr std::size_t kMostBars = 16;
constexpr double kSeen = 0.001;  // a part of less is no wider than a line
constexpr char kNoise[] = "cannot be told from noise";

// As in the picture of a step's phases, where it has the same.
std::size_t colour_of(const std::string& label) {
  static const std::vector<std::string> kLabels = {"compute", "communication", "straggler",
                                                   "launch",  "input",         "outside of steps"};
  return static_cast<std::size_t>(std::find(kLabels.begin(), kLabels.end(), label) -
                                  kLabels.begin());
}

bool is_beyond_noise(const Loss& loss) {
  return loss.interval && loss.interval->low > 0;
}

std::string text_of(const Loss& lost) {
  if (!lost.interval) return fmt::format("{:.1f}", 100 * lost.value);
  return fmt::format("{:.1f} [{:.1f}, {:.1f}]", 100 * lost.value, 100 * lost.interval->low,
                     100 * lost.interval->high);
}

std::vector<const PointExplanation*> losing_points(const Explanation& explanation) {
  std::vector<const PointExplanation*> points;
  for (const PointExplanation& point : explanation.points) {
    if (point.lost && point.lost->value > 0 && !point.losses.empty()) points.push_back(&point);
  }
  return points;
}

std::string subtitle_of(const std::vector<const PointExplanation*>& points, std::size_t losing) {
  std::string text = "against the base of each; behind the bar: in all";
  if (std::ranges::all_of(points, [](const auto* it) { return it->lost->interval.has_value(); })) {
    text += ", with its 95 % interval";
  }
  if (points.size() < losing) text += fmt::format("; the first {} of {}", points.size(), losing);
  return text;
}

}  // namespace

std::vector<Plot> loss_plots(const Explanation& explanation) {
  auto points = losing_points(explanation);
  if (points.empty()) return {};
  const std::size_t losing = points.size();
  points.resize(std::min(losing, kMostBars));
  std::vector<std::string> names;
  for (const PointExplanation* point : points) {
    for (const Loss& loss : point->losses) {
      const std::string name = is_beyond_noise(loss) ? loss.label : kNoise;
      if (loss.value > kSeen && std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kNoise; });
  Bars bars;
  bars.stacked = true;
  for (const PointExplanation* point : points) {
    bars.groups.push_back(point->name);
    bars.notes.push_back(text_of(*point->lost));
  }
  for (const std::string& name : names) {
    BarSeries series{name, {}, colour_of(name)};
    for (const PointExplanation* point : points) {
      double value = 0;
      for (const Loss& loss : point->losses) {
        const bool is_of_it = name == (is_beyond_noise(loss) ? loss.label : kNoise);
        if (is_of_it && loss.value > 0) value += 100 * loss.value;
      }
      series.bars.emplace_back(Bar{value, {}, ""});
    }
    bars.series.push_back(std::move(series));
  }
  Plot plot;
  plot.name = "loss";
  plot.title = "Efficiency lost: " + explanation.title;
  plot.subtitle = subtitle_of(points, losing);
  plot.x_label = "points of efficiency";
  plot.body = std::move(bars);
  return {plot};
}

}  // namespace paceline
