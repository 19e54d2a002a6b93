// Energy: --columns energy.
#include "analysis/study/amounts.h"
#include "analysis/study/energy.h"
#include "analysis/table/definition.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kKilo = 1000;

Cell scaled_cell(const std::optional<Estimate>& estimate, double unit) {
  if (!estimate) return {};
  Estimate shown = *estimate;
  shown.value /= unit;
  if (shown.interval)
    shown.interval = Interval{shown.interval->low / unit, shown.interval->high / unit};
  Cell cell = estimate_cell(shown, decimals_for(shown.value, 3));
  cell.value = estimate->value;
  cell.interval = estimate->interval;
  return cell;
}

// A ratio is of the base's runs, too.
Cell efficiency_cell(const RowFacts& facts, const Study& study) {
  Cell cell = percent_estimate(facts.energy_efficiency, 1);
  if (cell.text.empty() || runs_with(*facts.row, joules_per_sample) < facts.row->runs.size()) {
    return cell;
  }
  const Row& base = study.rows[facts.speed_up->base];
  const std::size_t known = runs_with(base, joules_per_sample);
  if (known < base.runs.size()) cell.text += " (base: " + counted(known, "run") + ")";
  return cell;
}

}  // namespace

void add_energy(std::vector<Definition>& all, const Study& study) {
  const std::string missing = missing_energy(study), unlike = unlike_meters(study);
  std::string note =
      "energy: of training, without evaluation and checkpoints; idle power is part of it; meters "
      "as in column energy covers; arithmetic means, as joules add up, and per sample and second "
      "sums over sums";
  for (const std::string& more : {missing, unlike}) {
    if (!more.empty()) note += ". " + more;
  }
  const auto add = [&](Column column, const std::string& text, auto cell, const RunFact& of) {
    column = extra("energy", std::move(column), text);
    column.absence = missing;
    all.push_back({std::move(column), cell, false, of});
  };
  add(
      interval_column("energy_joules", "energy\nWh"), note,
      [](const RowFacts& f) { return scaled_cell(mean_amount(*f.row, energy_joules), kWattHour); },
      energy_joules);
  add(
      interval_column("joules_per_sample", "J per\nsample"), "",
      [](const RowFacts& f) {
        return scaled_cell(ratio_of_sums(*f.row, energy_joules, &Run::samples), 1);
      },
      joules_per_sample);
  add(
      interval_column("mean_watts", "mean\nW"), "",
      [](const RowFacts& f) {
        return scaled_cell(ratio_of_sums(*f.row, energy_joules, energy_seconds), 1);
      },
      energy_joules);
  add(
      real_column("idle_watts", "idle\nW"),
      "idle W: power of the same meters before the first step, with all processes asleep",
      [](const RowFacts& f) {
        const auto watts = mean(*f.row, idle_watts);
        return number(watts, decimals_for(watts.value_or(0), 3));
      },
      idle_watts);
  add(
      interval_column("energy_efficiency", "energy\neffic."),
      "energy effic.: samples per joule over the base's, where the same meters cover both and no "
      "other job",
      [study = &study](const RowFacts& f) { return efficiency_cell(f, *study); },
      joules_per_sample);
  add(
      interval_column("energy_delay_joule_seconds", "EDP\nkJ s"),
      "EDP: energy-delay product, energy times fit seconds of a run",
      [](const RowFacts& f) { return scaled_cell(mean_amount(*f.row, energy_delay), kKilo); },
      energy_delay);
  add(
      real_column("joules_beside_training", "beside\nWh"),
      "beside: energy of evaluation and checkpoints",
      [](const RowFacts& f) {
        const auto joules = mean(*f.row, joules_beside_training);
        if (!joules) return Cell{};
        const double hours = *joules / kWattHour;
        return Cell{decimal(hours, decimals_for(hours, 3)), joules, {}};
      },
      joules_beside_training);
  add(text_column("energy_covers", "energy\ncovers"), "",
      [](const RowFacts& f) {
        return Cell{energy_covers(*f.row), {}, {}};
      },
      {});
  // The cells say it to people.
  all.push_back(
      {extra("energy", whole_column("energy_runs", "energy\nruns"), ""), [](const RowFacts& f) {
         const auto runs = static_cast<double>(runs_with(*f.row, energy_joules));
         return f.row->gap.empty() ? Cell{"", runs, {}} : Cell{};
       }});
}

}  // namespace paceline
