#include "analysis/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "analysis/study/labels.h"
#include "analysis/study/switches.h"
#include "analysis/table/definition.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

Cell rate_cell(const std::optional<Estimate>& rate) {
  return rate ? estimate_cell(*rate, rate->value < 1000 ? 1 : 0) : Cell{};
}

Cell speed_up_cell(const RowFacts& facts) {
  return facts.speed_up ? estimate_cell(facts.speed_up->ratio.estimate, 2) : Cell{};
}

// In brackets, where the network is worse than the base's.
Cell bracketed(Cell cell, const RowFacts& facts) {
  if (!cell.text.empty() && !facts.lower_quality().empty()) cell.text = "(" + cell.text + ")";
  return cell;
}

// Shown where the rows of one table have unlike intervals.
Cell interval_kind_cell(const RowFacts& facts) {
  if (!facts.speed_up || !facts.speed_up->ratio.estimate.interval) return {};
  return {facts.speed_up->ratio.kind == RatioKind::paired ? "paired" : "welch", {}, {}};
}

std::optional<double> step_phases(const Run& run) {
  return run.phase_step > 0 ? std::optional(run.phase_step) : std::nullopt;
}

// Rows that are only their own base have no speed-up.
bool has_comparisons(const Comparison& comparison) {
  for (std::size_t i = 0; i < comparison.speed_ups.size(); ++i) {
    if (comparison.speed_ups[i] && comparison.speed_ups[i]->base != i) return true;
  }
  return std::none_of(comparison.speed_ups.begin(), comparison.speed_ups.end(),
                      [](const auto& speed_up) { return speed_up.has_value(); });
}

Cell karp_flatt_cell(const RowFacts& facts) {
  if (!facts.speed_up || !facts.speed_up->karp_flatt) return {};
  const Estimate& fraction = *facts.speed_up->karp_flatt;
  return estimate_cell(fraction, fraction_digits(fraction));
}

Cell cpus_per_replica_cell(const RowFacts& facts) {
  const auto cpus = facts.run().cpus_per_replica();
  return cpus ? number(cpus, *cpus == std::floor(*cpus) ? 0 : 1) : Cell{};
}

void add_layout(std::vector<Definition>& all, const Study& study) {
  all.push_back({of_layout(text_column("system", "system")), [](const RowFacts& f) {
                   return Cell{f.run().system, {}, {}};
                 }});
  all.push_back({of_layout(whole_column("nodes", "nodes")),
                 [](const RowFacts& f) { return whole(f.run().nodes); }});
  all.push_back({of_layout(whole_column("ntasks", "ntasks")),
                 [](const RowFacts& f) { return whole(f.run().ntasks); }});
  all.push_back({of_layout(whole_column("cpus_per_task", "cpus-\nper-task")),
                 [](const RowFacts& f) { return whole(f.run().cpus_per_task); }});
  all.push_back(
      {whole_column("gpus", "gpus"), [](const RowFacts& f) { return whole(f.run().gpus); }, true});
  all.push_back(
      {of_layout(real_column("cpus_per_replica", "CPUs per\nreplica")), cpus_per_replica_cell});
  all.push_back({of_layout(text_column("backend", "backend")), [](const RowFacts& f) {
                   return Cell{f.run().backend, {}, {}};
                 }});
  for (const std::string& axis : study.axes) {
    all.push_back({text_column(axis.c_str(), axis.c_str()), [axis](const RowFacts& f) {
                     return Cell{f.run().parameters.text(axis).value_or(""), {}, {}};
                   }});
  }
}

void add_results(std::vector<Definition>& all, const Study& study, const Comparison& comparison) {
  all.push_back({whole_column("runs", "runs"),
                 [](const RowFacts& f) {
                   return whole(f.row->gap.empty() ? static_cast<int>(f.row->runs.size()) : 0);
                 },
                 true});
  all.push_back({in("time", interval_column("fit_seconds", "fit\nseconds")),
                 [](const RowFacts& f) { return measured_cell(f.fit_seconds); }, false,
                 &Run::fit_seconds});
  const auto first_epoch = [](const Run& run) { return run.record->timing.first_epoch_seconds; };
  all.push_back(
      {in("time", detail(8, narrow(interval_column("first_epoch_seconds", "first\nepoch s")))),
       [=](const RowFacts& f) { return measured_cell(estimate(*f.row, first_epoch)); }, false,
       first_epoch});
  all.push_back({in("time", detail(6, real_column("step_seconds", "step\nms"))),
                 [](const RowFacts& f) {
                   if (!f.step_seconds) return Cell{};
                   const double ms = *f.step_seconds * 1e3;
                   return Cell{decimal(ms, count_digits(ms, false)), f.step_seconds, {}};
                 },
                 false, &Run::step_seconds});
  all.push_back({in("rate", detail(1, narrow(interval_column("samples_per_second", "samples/s")))),
                 [](const RowFacts& f) { return rate_cell(f.samples_per_second); }, false,
                 &Run::samples_per_second});
  all.push_back({in("rate", detail(9, narrow(interval_column("samples_per_second_per_replica",
                                                             study.replicas_are_cores
                                                                 ? "samples/s\nper replica"
                                                                 : "samples/s\nper GPU")))),
                 [](const RowFacts& f) { return rate_cell(f.samples_per_second_per_replica); },
                 false, &Run::samples_per_second});
  const bool compares = has_comparisons(comparison);
  all.push_back(
      {in("scaling", interval_column("speed_up", "speed-up")),
       [compares](const RowFacts& f) { return compares ? bracketed(speed_up_cell(f), f) : Cell{}; },
       compares});
  all.push_back({in("scaling", narrow(interval_column("efficiency", "efficiency"))),
                 [compares](const RowFacts& f) {
                   return compares ? bracketed(percent_estimate(f.efficiency, 1), f) : Cell{};
                 },
                 compares && comparison.base.kind != Base::setting});
  all.push_back({in("scaling", detail(4, narrow(interval_column("karp_flatt", "Karp-\nFlatt")))),
                 karp_flatt_cell});
  all.push_back({in("phases", detail(4, real_column("input_stall", "input\nstall"))),
                 [](const RowFacts& f) { return percent(f.input_stall); }, false, step_phases});
  all.push_back({in("phases", detail(3, real_column("exposed_communication", "exposed\ncomm."))),
                 [](const RowFacts& f) { return percent(f.exposed_communication); }, false,
                 step_phases});
  all.push_back({in("cost", detail(5, interval_column("gpu_utilization", "GPU\nutil."))),
                 [](const RowFacts& f) { return percent_estimate(f.utilization, 0); }, false,
                 &Run::utilization});
  all.push_back({in("quality", detail(2, real_column("test_accuracy", "test\naccuracy"))),
                 [](const RowFacts& f) { return percent(mean(*f.row, &Run::test_accuracy), 2); },
                 false, &Run::test_accuracy});
  const auto top5 = [](const Run& run) { return run.record->quality.test_top5; };
  all.push_back({in("quality", detail(7, real_column("test_top5", "test\ntop-5"))),
                 [=](const RowFacts& f) { return percent(mean(*f.row, top5), 2); }, false, top5});
  all.push_back({in("quality", detail(2, real_column("epochs_to_goal", "epochs\nto goal"))),
                 [](const RowFacts& f) { return number(mean(*f.row, &Run::epochs_to_goal), 1); },
                 false, &Run::epochs_to_goal});
  all.push_back({whole_column("busy_runs", "busy\nruns"), [](const RowFacts& f) {
                   if (!f.row->gap.empty() || !f.run().busy) return Cell{};
                   // The label says it to people.
                   return Cell{"", static_cast<double>(busy_runs(*f.row)), {}};
                 }});
  all.push_back({text_column("label", "label"), [](const RowFacts& f) {
                   return Cell{row_label(*f.row), {}, {}};
                 }});
  all.push_back({in("quality", text_column("quality", "quality")), [](const RowFacts& f) {
                   return Cell{f.lower_quality(), {}, {}};
                 }});
}

void fill(Table& table, const std::vector<Definition>& definitions,
          const std::vector<RowFacts>& facts) {
  table.rows.resize(facts.size());
  for (const Definition& definition : definitions) {
    Column column = definition.column;
    column.shown = definition.essential;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      Cell cell = definition.cell(facts[i]);
      mark_fewer_runs(cell, *facts[i].row, definition.of);
      column.has_data = column.has_data || !cell.text.empty();
      table.rows[i].push_back(std::move(cell));
    }
    column.shown = (column.shown || column.has_data) && !column.is_extra;
    table.columns.push_back(std::move(column));
  }
}

// The rows and the gaps among them.
std::vector<RowFacts> with_gaps(const Study& study, const std::vector<RowFacts>& facts) {
  std::vector<RowFacts> gaps;
  for (const Row& row : study.gaps) gaps.emplace_back().row = &row;
  std::vector<RowFacts> all;
  std::merge(
      facts.begin(), facts.end(), gaps.begin(), gaps.end(), std::back_inserter(all),
      [&](const RowFacts& a, const RowFacts& b) { return stands_before(study, *a.row, *b.row); });
  return all;
}

void describe_rows(Table& table, const Study& study, const std::vector<RowFacts>& all) {
  std::vector<const Row*> rows;
  for (const RowFacts& row : all) {
    rows.push_back(row.row);
    table.is_gap.push_back(!row.row->gap.empty());
    table.commands.push_back(find_command(*row.row));
    std::vector<std::string>& records = table.records.emplace_back();
    for (const Run& run : row.row->runs) {
      if (run.kind == "measured") records.push_back(run.where);
    }
  }
  table.row_names = point_names(study, rows);
}

void hide(Table& table, std::string_view key) {
  for (Column& column : table.columns) column.shown = column.shown && column.key != key;
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

// "Largest mean speed-up: 1.84 ±0.33 (mirrored, 2 replicas, 1 CPU each), efficiency 92.0 ±16.7 %".
// Of rows of several replicas against one; of none that is spared work, disturbed or missed its
// goal.
std::string make_headline(const Study& study, const Comparison& comparison,
                          const std::vector<RowFacts>& facts) {
  if (comparison.base.kind == Base::setting) return "";
  const std::vector<bool> spared = spared_work(study);
  const RowFacts* largest = nullptr;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const RowFacts& row = facts[i];
    if (!row.speed_up || row.run().gpus < 2 || spared[i] || row.speed_up->lost ||
        row.row->tainted || !reached_goal(*row.row)) {
      continue;
    }
    if (!largest || row.speed_up->ratio.estimate.value > largest->speed_up->ratio.estimate.value) {
      largest = &row;
    }
  }
  if (!largest) return "";
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  const auto at = static_cast<std::size_t>(largest->row - study.rows.data());
  const bool is_faster = largest->speed_up->ratio.estimate.value > 1;
  std::string text = fmt::format(
      "{}: {} ({})", is_faster ? "Largest mean speed-up" : "No mean speed-up above 1; the largest",
      speed_up_cell(*largest).text, point_names(study, rows)[at]);
  if (largest->efficiency) text += ", efficiency " + percent_estimate(largest->efficiency, 1).text;
  return text;
}

}  // namespace

Table make_table(const Study& study, const Comparison& comparison,
                 const std::vector<RowFacts>& facts) {
  Table table;
  table.title = study_title(study);
  table.work = study.work;
  table.workload = study.workload;
  table.precision = study.precision;
  table.scaling = to_string(study.scaling);
  table.base = comparison.base.text();
  table.interval = interval_kinds(comparison);
  std::vector<Definition> definitions;
  add_layout(definitions, study);
  add_results(definitions, study, comparison);
  add_cost(definitions);
  add_energy(definitions, study);
  if (table.interval == "mixed") {
    definitions.push_back({text_column("interval", "interval"), interval_kind_cell});
  }
  const std::vector<RowFacts> all = with_gaps(study, facts);
  fill(table, definitions, all);
  describe_rows(table, study, all);
  // The title has it.
  if (!common_label(study).empty() && study.gaps.empty()) hide(table, "label");
  table.warnings = study.warnings;
  for (const Finding& finding : findings(study, comparison, facts)) {
    table.findings.push_back(finding.text);
  }
  table.controls = check_controls(study, comparison);
  table.broken = broken_rules(study, comparison, facts);
  table.provenance = provenance(study);
  table.left_out = study.left_out;
  table.notes = legend(study, comparison, facts, table.interval);
  table.headline = make_headline(study, comparison, facts);
  table.load = load_note(study);
  return table;
}

bool is_alike(const Table& table, std::size_t column) {
  const Column& it = table.columns[column];
  if (!it.shown || it.has_interval || it.key == "gpus" || table.rows.size() < 2) return false;
  if (!it.is_layout && !it.is_text && !it.is_whole) return false;
  const std::string& first = table.rows.front()[column].text;
  return !first.empty() && std::ranges::all_of(table.rows, [&](const std::vector<Cell>& row) {
    return row[column].text == first;
  });
}

std::string alike_text(const Table& table) {
  std::string text;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (!is_alike(table, k)) continue;
    std::string heading = table.columns[k].heading;
    std::ranges::replace(heading, '\n', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "In all rows: " : ", ", heading,
                        table.rows.front()[k].text);
  }
  return text;
}

}  // namespace paceline
