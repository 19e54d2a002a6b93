#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain/explain.h"
#include "analysis/plots/plot.h"

namespace paceline {

namespace {

constexpr std::size_t kMostBars = 16;
constexpr double kSeen = 0.004;  // a part of less is no wider than a line
constexpr char kNoise[] = "cannot be distinguished from noise";

std::string drawn_name(const Loss& loss) {
  return loss.share.is_above(0) || loss.share.is_below(0) ? loss.label : kNoise;
}

// In points: what is lost to the name, or gained by it.
double drawn_points(const PointExplanation& point, const std::string& name) {
  double points = 0;
  for (const Loss& loss : point.losses) {
    if (drawn_name(loss) == name) points += 100 * loss.share.value();
  }
  return points;
}

// "6.5 [2.6, 10.3]", where parts are gains "13.0 - 6.5 = 6.5 [2.6, 10.3]": the lengths of the bar
// to the right and to the left, and what they make.
std::string note_text(const PointExplanation& point, const std::vector<std::string>& names) {
  double right = 0, left = 0;
  for (const std::string& name : names) {
    const double points = drawn_points(point, name);
    (points > 0 ? right : left) += points;
  }
  const std::string total = points_text(*point.lost);
  constexpr double kShown = 0.05;
  const bool has_both = right > kShown && left < -kShown;
  return !has_both ? total : fmt::format("{:.1f} - {:.1f} = {}", right, -left, total);
}

bool has_visible_part(const PointExplanation& point) {
  return std::ranges::any_of(point.losses,
                             [](const Loss& loss) { return std::abs(loss.share.value()) > kSeen; });
}

std::vector<const PointExplanation*> shown_points(const Explanation& explanation) {
  std::vector<const PointExplanation*> points;
  for (const PointExplanation& point : explanation.points) {
    if (point.lost && has_visible_part(point)) points.push_back(&point);
  }
  return points;
}

std::string make_subtitle(const std::vector<const PointExplanation*>& points, std::size_t all) {
  std::string text = "behind the bar: lost - gained = in all";
  if (std::ranges::all_of(points, [](const auto* it) { return it->lost->is_known(); })) {
    text += ", with its 95 % interval";
  }
  if (points.size() < all) text += fmt::format("; the first {} of {}", points.size(), all);
  return text;
}

// Noise last.
std::vector<std::string> drawn_names(const std::vector<const PointExplanation*>& points) {
  std::vector<std::string> names;
  for (const PointExplanation* point : points) {
    for (const Loss& loss : point->losses) {
      const std::string name = drawn_name(loss);
      const bool is_new = std::ranges::find(names, name) == names.end();
      if (is_new && std::abs(loss.share.value()) > kSeen) names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kNoise; });
  return names;
}

}  // namespace

std::vector<Plot> loss_plots(const Explanation& explanation) {
  auto points = shown_points(explanation);
  if (points.empty()) return {};
  const std::size_t all = points.size();
  points.resize(std::min(all, kMostBars));
  const std::vector<std::string> names = drawn_names(points);
  Bars bars;
  bars.stacked = true;
  for (const PointExplanation* point : points) {
    bars.groups.push_back(point->name);
    bars.notes.push_back(note_text(*point, names));
  }
  for (const std::string& name : names) {
    BarSeries series{name, {}, part_colour(name)};
    for (const PointExplanation* point : points) {
      series.bars.emplace_back(Bar{drawn_points(*point, name), {}, ""});
    }
    bars.series.push_back(std::move(series));
  }
  Plot plot;
  plot.name = "loss";
  plot.title = "Efficiency lost: " + explanation.title;
  plot.subtitle = make_subtitle(points, all);
  plot.x_label = "points of efficiency";
  plot.body = std::move(bars);
  return {plot};
}

}  // namespace paceline
