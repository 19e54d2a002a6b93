// Energy: --columns energy.
#include "analysis/study/energy.h"
#include "analysis/table/definition.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kKilo = 1000;

Cell scaled_cell(const RowFacts& facts, std::optional<double> (*quantity)(const Run&),
                 double unit) {
  auto estimate = paceline::estimate(*facts.row, quantity);
  if (!estimate) return {};
  Estimate shown = *estimate;
  shown.value /= unit;
  if (shown.interval)
    shown.interval = Interval{shown.interval->low / unit, shown.interval->high / unit};
  Cell cell = estimate_cell(shown, significant_digits(shown.value));
  cell.value = estimate->value;
  cell.interval = estimate->interval;
  return cell;
}

}  // namespace

void add_energy(std::vector<Definition>& all, const Study& study) {
  const std::string missing = missing_energy(study), unlike = unlike_meters(study);
  std::string note =
      "energy: of training, without evaluation and checkpoints; idle power is part of it; meters "
      "as "
      "in column energy covers";
  for (const std::string& more : {missing, unlike}) {
    if (!more.empty()) note += ". " + more;
  }
  const auto add = [&](Column column, const std::string& text, auto cell) {
    column = extra("energy", std::move(column), text);
    column.absence = missing;
    all.push_back({std::move(column), cell});
  };
  add(interval_column("energy_joules", "energy\nWh"), note,
      [](const RowFacts& f) { return scaled_cell(f, energy_joules, kWattHour); });
  add(interval_column("joules_per_sample", "J per\nsample"), "",
      [](const RowFacts& f) { return scaled_cell(f, joules_per_sample, 1); });
  add(interval_column("mean_watts", "mean\nW"), "",
      [](const RowFacts& f) { return scaled_cell(f, mean_watts, 1); });
  add(real_column("idle_watts", "idle\nW"),
      "idle W: power of the same meters before the first step, with all processes asleep",
      [](const RowFacts& f) {
        const auto watts = mean(*f.row, idle_watts);
        return number(watts, significant_digits(watts.value_or(0)));
      });
  add(interval_column("energy_efficiency", "energy\neffic."),
      "energy effic.: samples per joule over the base's, where the same meters cover both and no "
      "other job",
      [](const RowFacts& f) { return percent_estimate(f.energy_efficiency, 1); });
  add(interval_column("energy_delay_joule_seconds", "EDP\nkJ s"),
      "EDP: energy-delay product, energy times fit seconds",
      [](const RowFacts& f) { return scaled_cell(f, energy_delay, kKilo); });
  add(real_column("joules_beside_training", "beside\nWh"),
      "beside: energy of evaluation and checkpoints", [](const RowFacts& f) {
        const auto joules = mean(*f.row, joules_beside_training);
        if (!joules) return Cell{};
        const double hours = *joules / kWattHour;
        return Cell{decimal(hours, significant_digits(hours)), joules, {}};
      });
  add(text_column("energy_covers", "energy\ncovers"), "", [](const RowFacts& f) {
    return Cell{energy_covers(*f.row), {}, {}};
  });
}

}  // namespace paceline
