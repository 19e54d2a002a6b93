#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/study/cost.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

bool is_named(const Column& column, std::string_view name) {
  return column.key == name || column.group == name;
}

void check_known(const Table& table, const std::string& name) {
  std::set<std::string> known;
  for (const Column& column : table.columns) {
    known.insert(column.key);
    known.insert(column.group);
  }
  if (known.contains(name)) return;
  throw usage_error(fmt::format("there is no column or group \"{}\"", name), "--columns",
                    suggestion(name, {known.begin(), known.end()}));
}

void keep(Table& table, const std::vector<bool>& kept) {
  const auto filter = [&](auto& cells) {
    std::size_t to = 0;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (!kept[k]) continue;
      if (to != k) cells[to] = std::move(cells[k]);
      ++to;
    }
    cells.resize(to);
  };
  filter(table.columns);
  for (auto& row : table.rows) filter(row);
}

// "input stall, exposed comm.: share of step time ..." is about these columns.
bool is_about(const std::string& note, const std::set<std::string>& headings) {
  const std::size_t end = note.find(": ");
  if (end == std::string::npos) return false;
  const std::vector<std::string> names = split(note.substr(0, end), ',');
  return std::ranges::all_of(
      names, [&](const std::string& name) { return headings.contains(std::string(trim(name))); });
}

// GPU-hours, memory and share of the peak: --columns cost.

using RunQuantity = std::optional<double> (*)(const Run&);

Cell hours_cell(const RowFacts& facts, RunQuantity hours) {
  const auto value = mean_amount(*facts.row, hours);
  return value ? estimate_cell(*value, decimals_for(value->value, 3)) : Cell{};
}

Cell bytes_cell(const RowFacts& facts, RunQuantity quantity) {
  const auto bytes = mean(*facts.row, quantity);
  return bytes ? Cell{format_bytes(*bytes), bytes, {}} : Cell{};
}

Cell share_cell(const RowFacts& facts, RunQuantity possible) {
  const auto share = ratio_of_sums(*facts.row, model_operations, possible);
  return share ? percent(share->value) : Cell{};
}

// Energy: --columns energy.

constexpr double kKilo = 1000;

Cell scaled_cell(const std::optional<Estimate>& estimate, double unit) {
  if (!estimate) return {};
  const Estimate shown = transformed(*estimate, [&](double value) { return value / unit; });
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

Cell rate_cell(const Unit& unit, std::optional<Estimate> rate) {
  rate = unit.shown(rate);
  if (!rate) return {};
  return estimate_cell(*rate, rate->value >= 1000 ? 0
                              : rate->value < 1   ? decimals_for(rate->value, 3)
                                                  : 1);
}

void choose_columns(Section& section, const std::vector<std::string>& choice) {
  Table& table = section.table;
  std::vector<std::string>& notes = section.notes;
  if (choice.empty()) {
    for (const Column& column : table.columns) {
      if (column.shown && !column.note.empty()) notes.push_back(column.note);
    }
    return;
  }
  const auto is_change = [](const std::string& word) {
    return word.starts_with('+') || word.starts_with('-');
  };
  const bool replaces = !std::ranges::all_of(choice, is_change);
  std::vector<bool> kept = mapped(table.columns, [&](const Column& column) {
    return column.group == "layout" || (!replaces && column.shown);
  });
  for (const std::string& word : choice) {
    const std::string name = is_change(word) ? word.substr(1) : word;
    check_known(table, name);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      Column& column = table.columns[k];
      if (!is_named(column, name)) continue;
      kept[k] = !word.starts_with('-') || column.group == "layout";
      column.detail = 0;  // a terminal that is too narrow leaves out others first
      column.shown = column.shown || column.has_data;
    }
  }
  std::set<std::string> hidden;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (!kept[k]) hidden.insert(one_line(table.columns[k].heading));
  }
  std::erase_if(notes, [&](const std::string& note) { return is_about(note, hidden); });
  keep(table, kept);
  for (const Column& column : table.columns) {
    const std::string& note = column.has_data ? column.note : column.absence;
    const bool is_known = std::ranges::find(notes, note) != notes.end();
    if (!note.empty() && !is_known) notes.push_back(note);
  }
}

void fold_rows(const std::vector<RowFacts>& rows, bool rates, Table& table) {
  constexpr std::size_t kMostRows = 20, kFewRows = 12;
  if (rows.size() <= kMostRows) return;
  std::map<std::pair<std::string, int>, std::vector<std::size_t>> sizes;
  const auto group = [&](bool by_system) {
    sizes.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Run& run = rows[i].run();
      if (!rows[i].row->gap.empty()) continue;
      sizes[{by_system ? run.system : "", run->layout.gpus}].push_back(i);
    }
    return sizes.size() <= kFewRows;
  };
  const bool by_system = group(true);
  if (!by_system) group(false);
  const auto cost = [&](std::size_t i) { return mean_cost(*rows[i].row, rates).value; };
  for (auto& [size, fastest] : sizes) std::ranges::stable_sort(fastest, {}, cost);
  const auto shown = [&](std::size_t each) {
    std::size_t sum = 0;
    for (const auto& [size, fastest] : sizes) sum += std::min(each, fastest.size());
    return sum;
  };
  std::size_t each = 1;
  while (each < rows.size() && shown(each + 1) <= kFewRows) ++each;
  table.is_folded.assign(rows.size(), true);
  for (const auto& [size, fastest] : sizes) {
    for (std::size_t k = 0; k < std::min(each, fastest.size()); ++k) {
      table.is_folded[fastest[k]] = false;
    }
  }
  table.folded = fmt::format("of {} rows, the {} of each {}size {} here; --verbose has all",
                             rows.size(), each == 1 ? "fastest" : fmt::format("{} fastest", each),
                             by_system ? "machine and " : "", each == 1 ? "is" : "are");
}

void add_cost(RowColumns& all, const Study& study) {
  constexpr char kHours[] =
      "GPU-hours, core-hours: what the job held (else the replicas), times setup, training, "
      "evaluation and checkpoints, without the job's start and gaps between runs; arithmetic means";
  const auto add = [&](const char* key, const char* heading, const std::string& note, auto cell,
                       RunQuantity of) -> RowColumns& {
    return all
        .real(key, heading, of_runs(of, [=](const RowFacts& facts) { return cell(facts, of); }))
        .extra("cost", note);
  };
  add("gpu_hours", "GPU-\nhours", kHours, hours_cell, gpu_hours).set(&Column::has_interval, true);
  add("core_hours", "core-\nhours", kHours, hours_cell, core_hours)
      .set(&Column::has_interval, true);
  constexpr double kBillion = 1e9;
  // Of tokens: samples are of any size.
  if (study.unit != Unit{} && !study.unit.is_own()) {
    const auto cell = [](const RowFacts& facts, RunQuantity hours) {
      const auto each = ratio_of_sums(*facts.row, hours, &Run::samples);
      if (!each) return Cell{};
      const Estimate shown = transformed(*each, [](double value) { return value * kBillion; });
      return estimate_cell(shown, decimals_for(shown.value, 3));
    };
    add(("gpu_hours_per_billion_" + study.unit.name).c_str(),
        ("GPU-hours a\nbillion " + study.unit.name).c_str(), kHours, cell, gpu_hours)
        .set(&Column::has_interval, true);
  }
  add("gpu_memory_bytes", "GPU\nmemory",
      "GPU memory: the largest use of a GPU, by all processes; mean over runs", bytes_cell,
      gpu_memory);
  const auto states = [&](const char* name) {
    return std::ranges::any_of(
        study.rows, [&](const Row& row) { return row.first()->parameters.find(name) != nullptr; });
  };
  const OperationsFrom from =
      study.rows.empty() ? OperationsFrom::plan : count_operations(study.rows.front().first()).from;
  const std::string kOperations =
      from == OperationsFrom::statement    ? "operations as the study states them (flops_per_item)"
      : from == OperationsFrom::parameters ? "6 operations for each parameter and token"
                                           : "the model's operations (forward and backward, "
                                             "without the gradient of the first layer's input)";
  add("share_of_probe", "of probe's\nFLOP/s",
      "of probe's FLOP/s: " + kOperations +
          " over what matrix products, at their speed beside the run, could have done; all runs "
          "together",
      share_cell, probe_operations);
  add("share_of_data_sheet", "MFU",
      "MFU: model FLOPs utilization (PaLM, Chowdhery et al., 2022): " + kOperations +
          " over the dense peak " +
          (states("peak_tflops") ? "that the study states (peak_tflops)"
                                 : "of the GPU's data sheet at this precision"),
      share_cell, peak_operations)
      .set(&Column::is_extra, !states("peak_tflops") && !states("flops_per_item"));
  add("node_memory_bytes", "node\nmemory",
      "node memory: largest resident memory of a node's processes, summed; what they share counts "
      "in each; mean over runs",
      bytes_cell, node_memory);
}

void add_energy(RowColumns& all, const Study& study) {
  const std::string missing = missing_energy(study), unlike = unlike_meters(study);
  std::string note =
      "energy: of training with idle power, without evaluation and checkpoints, by the meters in "
      "column energy covers; arithmetic means, and sums over sums per sample and second";
  for (const std::string& more : {missing, unlike}) {
    if (!more.empty()) note += ". " + more;
  }
  using Row = const RowFacts&;
  const auto add = [&](const char* key, const char* heading, const std::string& text, auto cell,
                       const RunFact& of) -> RowColumns& {
    return all.real(key, heading, of_runs(of, cell))
        .extra("energy", text)
        .set(&Column::absence, missing);
  };
  const auto add_mean = [&](const char* key, const char* heading, const std::string& text,
                            auto cell, const RunFact& of) {
    add(key, heading, text, cell, of).set(&Column::has_interval, true);
  };
  add_mean(
      "energy_joules", "energy\nWh", note,
      [](Row f) { return scaled_cell(mean_amount(*f.row, energy_joules), kWattHour); },
      energy_joules);
  add_mean(
      ("joules_per_" + study.unit.one()).c_str(), ("J per\n" + study.unit.one()).c_str(), "",
      [](Row f) { return scaled_cell(ratio_of_sums(*f.row, energy_joules, &Run::samples), 1); },
      joules_per_sample);
  add_mean(
      "mean_watts", "mean\nW", "",
      [](Row f) { return scaled_cell(ratio_of_sums(*f.row, energy_joules, energy_seconds), 1); },
      energy_joules);
  add(
      "idle_watts", "idle\nW",
      "idle W: power of the same meters before the first step, with all processes asleep",
      [](Row f) {
        const auto watts = mean(*f.row, idle_watts);
        return number(watts, decimals_for(watts.value_or(0), 3));
      },
      idle_watts);
  add_mean(
      "energy_efficiency", "energy\neffic.",
      "energy effic.: samples per joule over the base's, where the same meters cover both and no "
      "other job",
      [study = &study](Row f) { return efficiency_cell(f, *study); }, joules_per_sample);
  add_mean(
      "energy_delay_joule_seconds", "EDP\nkJ s",
      "EDP: energy-delay product, energy times fit seconds of a run",
      [](Row f) { return scaled_cell(mean_amount(*f.row, energy_delay), kKilo); }, energy_delay);
  add(
      "joules_beside_training", "beside\nWh", "beside: energy of evaluation and checkpoints",
      [](Row f) {
        const auto joules = mean(*f.row, joules_beside_training);
        if (!joules) return Cell{};
        const double hours = *joules / kWattHour;
        return Cell{decimal(hours, decimals_for(hours, 3)), joules};
      },
      joules_beside_training);
  all.text("energy_covers", "energy\ncovers", [](Row f) { return energy_covers(*f.row); })
      .extra("energy", "")
      .set(&Column::absence, missing)
      .layout();
  // The cells say it to people.
  all.real("energy_runs", "energy\nruns",
           [](Row f) {
             const auto runs = static_cast<double>(runs_with(*f.row, energy_joules));
             return f.row->gap.empty() ? Cell{"", runs} : Cell{};
           })
      .extra("energy", "")
      .set(&Column::is_whole, true);
}

std::string interval_kinds(const Comparison& comparison) {
  std::set<RatioKind> kinds;
  for (const auto& speed_up : comparison.speed_ups) {
    if (speed_up && speed_up->ratio.estimate.interval) kinds.insert(speed_up->ratio.kind);
  }
  if (kinds.size() > 1) return "mixed";
  if (kinds.empty()) return "none";
  return *kinds.begin() == RatioKind::paired ? "paired" : "welch";
}

Json provenance_json(const std::vector<ProvenanceFact>& facts) {
  Json json = Json::object();
  for (const ProvenanceFact& fact : facts) {
    for (const auto& [value, runs] : fact.values) {
      json[fact.name].push_back({{"value", value}, {"runs", runs}});
    }
  }
  return json;
}

}  // namespace paceline
