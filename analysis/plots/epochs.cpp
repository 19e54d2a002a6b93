// Seconds per epoch: shows whether the first one is unlike the others, and whether they drift.

#include <algorithm>

#include "analysis/plots/study_plots.h"
#include "analysis/study/contrast.h"
#include "analysis/study/labels.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

constexpr std::size_t kMostEpochSeries = 8, kMostAside = 6;
constexpr double kMostSpreadOnALinearAxis = 12;  // the slowest epoch over the fastest

// None where an epoch of a run took no time.
std::size_t count_epochs(const Row& row) {
  std::size_t least = row.first()->timing->epoch_seconds.size();
  for (const Run& run : row.runs) {
    const std::vector<double>& all = run->timing->epoch_seconds;
    if (std::ranges::any_of(all, [](double seconds) { return !(seconds > 0); })) return 0;
    least = std::min(least, all.size());
  }
  return least;
}

PlotSeries make_series(const Row& row, const std::string& name) {
  PlotSeries series{.name = name, .machine = row.first().system};
  for (std::size_t epoch = 0; epoch < count_epochs(row); ++epoch) {
    const Estimate mean = geometric_mean(
        unit_values(
            row, [&](const Run& run) { return std::optional(run->timing->epoch_seconds[epoch]); }),
        find_stopping(row));
    series.points.push_back(
        {static_cast<double>(epoch + 1), mean.value, row.tainted ? std::nullopt : mean.interval});
  }
  return series;
}

std::vector<Tic> epoch_tics(std::size_t epochs) {
  std::vector<Tic> result;
  const std::size_t step = std::max<std::size_t>(1, (epochs + 14) / 15);
  for (std::size_t epoch = 1; epoch <= epochs; epoch += step) {
    result.push_back({static_cast<double>(epoch), std::to_string(epoch)});
  }
  return result;
}

double compute_spread(const Lines& lines) {
  double least = *lines.series.front().points.front().y, most = least;
  for (const PlotSeries& series : lines.series) {
    for (const PlotPoint& point : series.points) {
      least = std::min(least, *point.y);
      most = std::max(most, *point.y);
    }
  }
  return most / least;
}

}  // namespace

// Seconds per epoch, for the fastest row of each size. Needs runs of at least two epochs.
std::vector<Plot> epoch_plots(const PlotSource& source) {
  std::vector<const Row*> rows;
  for (std::size_t i = 0; i < source.study.rows.size(); ++i) {
    const Row& row = source.study.rows[i];
    if (source.comparison.best_of_size[i] && count_epochs(row) > 1) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  std::ranges::stable_sort(rows, {}, [](const Row* row) { return row->first()->layout.gpus; });
  if (rows.size() > kMostEpochSeries) rows.resize(kMostEpochSeries);
  const std::vector<std::string> names = point_names(source.study, rows);
  Lines lines;
  std::size_t most = 0;
  bool bars = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    lines.series.push_back(make_series(*rows[i], names[i]));
    most = std::max(most, lines.series.back().points.size());
    bars = bars || lines.series.back().points.front().interval;
  }
  lines.x_tics = epoch_tics(most);
  lines.aside = bars && rows.size() > 1 && most <= kMostAside;
  if (compute_spread(lines) > kMostSpreadOnALinearAxis) lines.log_y = 10;
  return {{.name = "epochs",
           .title = "Epochs: " + source.title,
           .subtitle = std::string("seconds of each epoch, the fastest point of each size") +
                       (bars ? "; bars: 95 % intervals" : ""),
           .x_label = "epoch",
           .y_label = "seconds",
           .body = std::move(lines)}};
}

}  // namespace paceline
