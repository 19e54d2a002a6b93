// Where the mean step of each point goes.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/plots/plot.h"
#include "analysis/plots/study_plots.h"
#include "analysis/study/labels.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

constexpr std::size_t kMostPoints = 24;

struct Phase {
  const char* name;
  double PhaseSeconds::*seconds;
};

// As they follow each other in a step.
constexpr Phase kPhases[] = {{"waiting for input", &PhaseSeconds::input},
                             {"forward", &PhaseSeconds::forward},
                             {"backward", &PhaseSeconds::backward},
                             {"communication (exposed)", &PhaseSeconds::communication},
                             {"update", &PhaseSeconds::update},
                             {"other", &PhaseSeconds::other}};

// Steps of all ranks and runs; 0 where their phases are not known.
double count_steps(const Row& row) {
  double steps = 0;
  for (const Run& run : row.runs) steps += run.phase_ranks * run.steps().value_or(0);
  return steps;
}

double total_seconds(const Row& row, double PhaseSeconds::*phase) {
  double seconds = 0;
  for (const Run& run : row.runs) {
    if (run.steps()) seconds += (*run.phase_sum).*phase;
  }
  return seconds;
}

bool has_phases(const Row& row) {
  return count_steps(row) > 0 && total_seconds(row, &PhaseSeconds::step) > 0;
}

// All, or where they are too many the fastest of each size.
std::vector<const Row*> shown_rows(const PlotSource& source) {
  std::vector<const Row*> all, best;
  for (std::size_t i = 0; i < source.study.rows.size(); ++i) {
    const Row& row = source.study.rows[i];
    if (!has_phases(row)) continue;
    all.push_back(&row);
    if (source.comparison.best_of_size[i]) best.push_back(&row);
  }
  if (all.empty()) return all;
  for (const Row& gap : source.study.gaps) all.push_back(&gap);
  std::vector<const Row*>& rows = all.size() > kMostPoints ? best : all;
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row* a, const Row* b) { return stands_before(source.study, *a, *b); });
  if (rows.size() > kMostPoints) rows.resize(kMostPoints);
  return rows;
}

}  // namespace

// The mean step of each point, stacked by phase: seconds summed over ranks and runs / their steps.
std::vector<Plot> breakdown_plots(const PlotSource& source) {
  const std::vector<const Row*> rows = shown_rows(source);
  if (rows.empty()) return {};
  Bars bars{.groups = point_names(source.study, rows), .stacked = true};
  for (const Row* row : rows) {
    const double steps = count_steps(*row);
    const double ms = steps > 0 ? 1e3 * total_seconds(*row, &PhaseSeconds::step) / steps : 0;
    bars.notes.push_back(row->gap.empty() ? fmt::format("{:.3g} ms", ms) : row->gap);
  }
  for (const Phase& phase : kPhases) {
    BarSeries series{phase.name, {}, part_colour(phase.name)};
    bool any = false;
    for (const Row* row : rows) {
      const double steps = count_steps(*row);
      const double ms = steps > 0 ? 1e3 * total_seconds(*row, phase.seconds) / steps : 0;
      any = any || ms > 0;
      series.bars.push_back(row->gap.empty() ? std::optional(Bar{ms, {}, ""}) : std::nullopt);
    }
    if (any) bars.series.push_back(std::move(series));
  }
  Plot plot{.name = "breakdown",
            .title = "Where a step goes: " + source.title,
            .subtitle = "where the mean step goes (over ranks and runs)"};
  std::size_t measured = 0;
  for (const Row& row : source.study.rows) measured += has_phases(row) ? 1 : 0;
  if (measured > rows.size()) {
    plot.subtitle = fmt::format("where the mean step goes; {} of {} points: the fastest of a size",
                                rows.size(), measured);
  }
  plot.x_label = "ms per step";
  plot.body = std::move(bars);
  return {plot};
}

}  // namespace paceline
