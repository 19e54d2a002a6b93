#include "analysis/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "analysis/study/cost.h"
#include "analysis/study/labels.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"

namespace paceline {

namespace {

// A ratio, in brackets if the network is no equal of the base's.
Cell ratio_cell(const std::optional<Estimate>& ratio, const Cell& made, const RowFacts& facts) {
  Cell cell = made;
  // The digits of a wide interval would promise more than the runs show.
  constexpr double kTooWide = 100;
  if (ratio && ratio->interval && ratio->interval->high > kTooWide * ratio->interval->low) {
    cell.text = "cannot tell";
  }
  if (!cell.text.empty() && facts.is_barred()) cell.text = "(" + cell.text + ")";
  return cell;
}

Cell speed_up_cell(const RowFacts& facts) {
  const std::optional<Estimate> ratio = facts.ratio();
  return ratio ? ratio_cell(ratio, estimate_cell(*ratio, 2), facts) : Cell{};
}

std::optional<double> step_phases(const Run& run) {
  return run.phase_sum->step > 0 ? std::optional(run.phase_sum->step) : std::nullopt;
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

std::string compare_with_base(const RowFacts& facts, bool is_base) {
  if (is_base) return "base";
  const SpeedVerdict verdict = facts.speed_up ? facts.speed_up->verdict : SpeedVerdict::unjudged;
  return verdict == SpeedVerdict::faster        ? "faster"
         : verdict == SpeedVerdict::slower      ? "slower"
         : verdict == SpeedVerdict::cannot_tell ? "cannot tell"
                                                : "";
}

// The row's label has its work already.
std::string quality_text(const RowFacts& facts) {
  return facts.speed_up && facts.speed_up->standing.is_of_work() ? "" : facts.quality_label();
}

// What "faster" and "slower" rest on.
std::string verdict_note(const Comparison& comparison, const std::vector<RowFacts>& facts) {
  const bool has_settings = std::ranges::any_of(facts, [&](const RowFacts& row) {
    return row.speed_up && row.speed_up->verdict != SpeedVerdict::unjudged &&
           row.speed_up->ideal == 1;
  });
  return std::string(
             "verdict: faster or slower where the row and its base have 3 runs or more and the "
             "interval of the speed-up excludes 1") +
         (!has_settings ? ""
          : comparison.base.compares_sizes()
              ? "; rows of the base's size are tested together (Holm, 95 %)"
              : ", and a test of all rows together (Holm, 95 %) finds it, too");
}

void add_layout(RowColumns& all, const Study& study) {
  using Row = const RowFacts&;
  all.whole("runs", "runs", [](Row f) { return f.row->gap.empty() ? f.row->runs.size() : 0; })
      .layout()
      .detail(0);
  all.whole("gpus", "gpus", [](Row f) { return f.run()->layout.gpus; }).layout();
  all.real("cpus_per_replica", "CPUs per\nreplica", cpus_per_replica_cell).layout();
  all.whole("cpus_per_task", "cpus-\nper-task", [](Row f) { return f.run()->layout.cpus_per_task; })
      .layout();
  all.whole("ntasks", "ntasks", [](Row f) { return f.run()->layout.ntasks; }).layout();
  all.whole("nodes", "nodes", [](Row f) { return f.run()->layout.nodes; }).layout();
  all.text("backend", "backend", [](Row f) { return f.run().backend; }).layout();
  all.text("system", "system", [](Row f) { return f.run().system; }).layout();
  for (const std::string& axis : study.axes) {
    all.text(axis, axis, [axis](Row f) { return f.run()->parameters.text(axis).value_or(""); })
        .layout();
  }
  all.text("command", "", [](Row f) { return find_command(*f.row); }).programs();
}

void add_time(RowColumns& all, int detail) {
  all.interval(
         "fit_seconds", "fit\nseconds",
         of_runs(&Run::fit_seconds, [](const RowFacts& f) { return measured_cell(f.fit_seconds); }))
      .in("time")
      .detail(detail);
}

void add_rate(RowColumns& all, const Study& study, int detail) {
  all.interval(study.unit.rate_key(), study.unit.rate(),
               of_runs(&Run::samples_per_second,
                       [unit = study.unit](const RowFacts& f) {
                         return rate_cell(unit, f.samples_per_second);
                       }))
      .in("rate")
      .detail(detail);
}

// Several programs, where the base is a smaller size of each: what else they are compared with.
std::optional<Comparison> compare_with_reference(const Study& study, const Comparison& comparison) {
  if (study.reference.empty() || comparison.base.axis == "program") return std::nullopt;
  Comparison against = compare(study, {"program", study.reference});
  for (std::size_t i = 0; i < against.speed_ups.size(); ++i) {
    if (against.speed_ups[i] && against.speed_ups[i]->base != i) return against;
  }
  return std::nullopt;
}

void add_against(RowColumns& all, const Study& study, const Comparison& against) {
  all.interval("against_reference", "against\n" + study.reference,
               [&](const RowFacts& f) {
                 RowFacts facts;
                 const auto at = static_cast<std::size_t>(f.row - study.rows.data());
                 if (at < study.rows.size() && against.speed_ups[at]) {
                   facts.speed_up = &*against.speed_ups[at];
                 }
                 return speed_up_cell(facts);
               })
      .in("scaling");
}

std::string against_note(const Study& study, const Comparison& against) {
  const std::string kinds = interval_kinds(against);
  return fmt::format("against {0}: speed-up over program {0} at the same point, by {1}; {2}",
                     study.reference, against.rates ? study.unit.rate() : "fit seconds",
                     kinds == "paired"  ? "paired intervals"
                     : kinds == "welch" ? "Welch's intervals"
                     : kinds == "mixed" ? "paired intervals where rows have the same rounds, "
                                          "Welch's elsewhere"
                                        : "no interval");
}

void add_ratios(RowColumns& all, const Study& study, const Comparison& comparison,
                const std::optional<Comparison>& against) {
  const bool compares = has_comparisons(comparison);
  all.interval("speed_up", "speed-up",
               [=](const RowFacts& f) { return compares ? speed_up_cell(f) : Cell{}; })
      .in("scaling")
      .essential(compares);
  all.interval("efficiency", "efficiency",
               [=](const RowFacts& f) {
                 if (!compares) return Cell{};
                 return ratio_cell(f.ratio(), percent_estimate(f.efficiency, 1), f);
               })
      .in("scaling")
      .detail(1)
      .essential(compares && comparison.base.compares_sizes());
  if (against) add_against(all, study, *against);
  all.real("exposed_communication", "exposed\ncomm.",
           of_runs(step_phases, [](const RowFacts& f) { return percent(f.exposed_communication); }))
      .in("phases")
      .detail(2);
  std::set<const Row*> bases;
  for (const auto& each : comparison.speed_ups) {
    if (each && compares) bases.insert(&study.rows[each->base]);
  }
  const std::string common = study.gaps.empty() ? common_label(study) : "";  // the title has it
  all.text("verdict", "verdict", [=](const RowFacts& f) {
    const std::string label = row_label(*f.row);
    std::vector<std::string> parts = {compare_with_base(f, bases.contains(f.row)), quality_text(f),
                                      label == common ? "" : label};
    std::erase(parts, "");
    return join(parts, "; ");
  });
  all.text("label", "", [](const RowFacts& f) { return row_label(*f.row); }).programs();
  all.text("quality", "", quality_text).in("quality").programs();
}

void add_details(RowColumns& all, const Study& study) {
  using Row = const RowFacts&;
  const auto first_epoch = [](const Run& run) { return run->timing->first_epoch_seconds; };
  const auto top5 = [](const Run& run) { return run->quality.test_top5; };
  const auto step_cell = [](Row f) {
    if (!f.step_seconds) return Cell{};
    const double ms = *f.step_seconds * 1e3;
    return Cell{decimal(ms, count_digits(ms, false)), f.step_seconds};
  };
  const auto mean_percent = [](const RunFact& fact) {
    return of_runs(fact, [fact](Row f) { return percent(mean(*f.row, fact), 2); });
  };
  all.interval("karp_flatt", "Karp-\nFlatt", karp_flatt_cell).in("scaling").detail(4);
  all.real("input_stall", "input\nstall",
           of_runs(step_phases, [](Row f) { return percent(f.input_stall); }))
      .in("phases")
      .detail(4);
  all.interval(
         "first_epoch_seconds", "first\nepoch s",
         of_runs(first_epoch, [=](Row f) { return measured_cell(estimate(*f.row, first_epoch)); }))
      .in("time")
      .detail(8);
  all.real("step_seconds", "step\nms", of_runs(&Run::step_seconds, step_cell)).in("time").detail(6);
  all.interval(study.unit.rate_key() + "_per_replica",
               study.unit.rate() + (study.replicas_are_cores ? "\nper replica" : "\nper GPU"),
               of_runs(&Run::samples_per_second,
                       [unit = study.unit](Row f) {
                         const bool has_share = unit.better != "less";
                         return has_share ? rate_cell(unit, f.samples_per_second_per_replica)
                                          : Cell{};
                       }))
      .in("rate")
      .detail(9);
  all.interval("gpu_utilization", "GPU\nutil.",
               of_runs(&Run::utilization, [](Row f) { return percent_estimate(f.utilization, 0); }))
      .in("cost")
      .detail(5);
  all.real("test_accuracy", "test\naccuracy", mean_percent(&Run::test_accuracy))
      .in("quality")
      .detail(3);
  all.real("test_top5", "test\ntop-5", mean_percent(top5)).in("quality").detail(7);
  all.real("epochs_to_goal", "epochs\nto goal",
           of_runs(&Run::epochs_to_goal,
                   [](Row f) { return number(mean(*f.row, &Run::epochs_to_goal), 1); }))
      .in("quality")
      .detail(3);
  // For programs: the verdict states it for people.
  all.whole("busy_runs", "",
            [](Row f) {
              const bool is_known = f.row->gap.empty() && f.run()->provenance.machine_load.busy;
              return is_known ? std::optional<std::int64_t>(busy_runs(*f.row)) : std::nullopt;
            })
      .programs();
}

std::vector<std::string> names_of_rows(const Study& study, const std::vector<RowFacts>& all) {
  return point_names(study, mapped(all, &RowFacts::row));
}

// "Largest mean speed-up: 1.84 ±0.33 (mirrored, 2 replicas, 1 CPU each), efficiency 92.0 ±16.7 %".
// Considers rows of more replicas than their base, except those that are spared work, trained
// worse, were disturbed or missed their goal.
std::string make_headline(const Study& study, const Comparison& comparison,
                          const std::vector<RowFacts>& facts) {
  if (!comparison.base.compares_sizes()) return "";
  const std::vector<bool> spared = spared_work(study);
  const RowFacts* largest = nullptr;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const RowFacts& row = facts[i];
    if (!row.speed_up || row.speed_up->ideal <= 1 || spared[i] || row.is_barred() ||
        row.is_worse_than_others() || row.row->tainted || !reached_goal(*row.row)) {
      continue;
    }
    if (!largest || row.speed_up->ratio.estimate.value > largest->speed_up->ratio.estimate.value) {
      largest = &row;
    }
  }
  if (!largest) return "";
  const std::string name =
      names_of_rows(study, facts).at(static_cast<std::size_t>(largest - facts.data()));
  const bool is_faster = largest->speed_up->ratio.estimate.value > 1;
  std::string text = fmt::format(
      "{}: {} ({})", is_faster ? "Largest mean speed-up" : "No mean speed-up above 1; the largest",
      speed_up_cell(*largest).text, name);
  if (largest->efficiency) text += ", efficiency " + percent_estimate(largest->efficiency, 1).text;
  const std::string doubt = largest->speed_up->standing.doubt();
  return text + (doubt.empty() ? "" : "; " + doubt);
}

// When and where the runs were made.
std::string make_lead(const Study& study, const std::vector<ProvenanceFact>& facts) {
  std::vector<std::string> parts;
  for (const char* name : {"started", "hosts", "machine", "device"}) {
    for (const ProvenanceFact& fact : facts) {
      if (fact.name != name) continue;
      for (std::size_t i = 0; i < fact.values.size() && i < 3; ++i) {
        parts.push_back(fact.values[i].first);
      }
      if (fact.values.size() > 3) {
        parts.back() += fmt::format(" and {} more", fact.values.size() - 3);
      }
    }
  }
  parts.push_back(load_note(study));
  std::erase(parts, "");
  return join(parts, " · ");
}

Section rules_part(const std::vector<BrokenRule>& broken) {
  Section part{.title = summarize(broken), .kind = "rules", .is_folded = true};
  for (const BrokenRule& each : broken) part.findings.emplace_back(format_sentence(each));
  part.shown = Visibility::in_detail;
  return part;
}

Section provenance_part(const std::vector<ProvenanceFact>& facts) {
  struct Value {
    std::string fact, value;
    std::size_t runs;
  };
  std::vector<Value> values;
  for (const ProvenanceFact& fact : facts) {
    for (const auto& [value, runs] : fact.values) values.push_back({fact.name, value, runs});
  }
  return {.title = "Where the numbers come from",
          .kind = "facts",
          .table = ColumnsOf<Value>()
                       .text("fact", "fact", &Value::fact)
                       .text("value", "value", &Value::value)
                       .whole("runs", "runs", &Value::runs)
                       .table(values),
          .shown = Visibility::in_detail,
          .is_folded = true};
}

Section runs_part(const std::vector<RowFacts>& rows, const std::vector<std::string>& names) {
  struct Runs {
    std::string point, command;
    Cell records;
  };
  std::vector<Runs> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Runs& runs = all.emplace_back(Runs{names[i], find_command(*rows[i].row), {}});
    for (const Run& run : rows[i].row->runs) {
      if (run->kind == "measured" && !run.where.empty()) runs.records.links.push_back(run.where);
    }
    if (runs.command.empty() && runs.records.links.empty()) all.pop_back();
  }
  return {.title = "Command and records of each row",
          .kind = "runs",
          .table = ColumnsOf<Runs>()
                       .text("point", "point", &Runs::point)
                       .text("command", "command", &Runs::command)
                       .set(&Column::is_code, true)
                       .add({.key = "records", .heading = "records", .is_text = true},
                            [](const Runs& runs) { return runs.records; })
                       .essential()
                       .table(all),
          .shown = Visibility::on_pages};
}

Json work_json(const Work& work) {
  Json json = Json::object();
  for (const auto& [name, value] : work) {
    std::visit([&json, &name = name](const auto& each) { json[name] = each; }, value);
  }
  return json;
}

Json rules_json(const std::vector<BrokenRule>& broken) {
  return mapped(broken, [](const BrokenRule& each) {
    return Json{{"rule", each.rule}, {"what", each.what}, {"fix", each.fix}};
  });
}

Table controls_table(const std::vector<ControlCheck>& controls) {
  using Row = const ControlCheck&;
  return ColumnsOf<ControlCheck>()
      .text("point", "point", &ControlCheck::point)
      .whole("runs", "runs", [](Row r) { return r.ratio.estimate.count; })
      .interval("ratio", "ratio", [](Row r) { return estimate_cell(r.ratio.estimate, 3); })
      .flag("differs", &ControlCheck::differs)
      .table(controls);
}

}  // namespace

std::function<Cell(const RowFacts&)> of_runs(const RunFact& fact,
                                             std::function<Cell(const RowFacts&)> make) {
  return [fact, make = std::move(make)](const RowFacts& facts) {
    Cell cell = make(facts);
    if (!fact || cell.text.empty() || !facts.row->gap.empty()) return cell;
    const std::size_t known = runs_with(*facts.row, fact);
    if (known < facts.row->runs.size()) cell.text += " (" + counted(known, "run") + ")";
    return cell;
  };
}

std::vector<RowFacts> reading_order(const Study& study, const Comparison& comparison,
                                    const std::vector<RowFacts>& facts) {
  std::vector<RowFacts> gaps, all;
  for (const Row& row : study.gaps) gaps.emplace_back().row = &row;
  std::merge(
      facts.begin(), facts.end(), gaps.begin(), gaps.end(), std::back_inserter(all),
      [&](const RowFacts& a, const RowFacts& b) { return stands_before(study, *a.row, *b.row); });
  std::set<const Row*> bases;
  for (std::size_t i = 0; i < comparison.speed_ups.size(); ++i) {
    const auto& speed_up = comparison.speed_ups[i];
    if (speed_up && speed_up->base != i) bases.insert(&study.rows[speed_up->base]);
  }
  const bool has_sizes = comparison.base.axis != "gpus";
  std::ranges::stable_sort(all, {}, [&](const RowFacts& row) {
    const Run& run = row.run();
    return std::tuple(run->kind, run.system, has_sizes ? run->layout.gpus : 0,
                      !bases.contains(row.row), run->layout.gpus);
  });
  return all;
}

Section make_section(const Study& study, const Comparison& comparison,
                     const std::vector<RowFacts>& facts) {
  const std::vector<RowFacts> rows = reading_order(study, comparison, facts);
  const std::vector<std::string> names = names_of_rows(study, rows);
  const std::string interval = interval_kinds(comparison);
  RowColumns columns;
  const bool has_times =
      std::ranges::any_of(facts, [](const RowFacts& row) { return row.fit_seconds.has_value(); });
  const bool rates = comparison.rates || !has_times;
  rates ? add_rate(columns, study, 0) : add_time(columns, 0);
  const auto against = compare_with_reference(study, comparison);
  add_ratios(columns, study, comparison, against);
  rates ? add_time(columns, 5) : add_rate(columns, study, 5);
  add_details(columns, study);
  if (interval == "mixed") {
    columns.text("interval", "interval", &RowFacts::interval_kind).detail(3);
  }
  add_layout(columns, study);
  add_cost(columns, study);
  add_energy(columns, study);
  Section section{.title = study_title(study), .warnings = study.warnings};
  Table& table = section.table = columns.table(rows);
  table.columns.insert(table.columns.begin(),
                       {.key = "point", .heading = "point", .is_text = true});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.rows[i].insert(table.rows[i].begin(), {names[i]});
    table.is_gap.push_back(!rows[i].row->gap.empty());
  }
  for (const Finding& finding : findings(study, comparison, facts)) {
    section.findings.push_back(to_statement(finding));
  }
  section.headline = make_headline(study, comparison, facts);
  section.notes = legend(study, comparison, facts, interval);
  section.caveats = caveats(study, comparison);
  fold_rows(rows, rates, table);
  if (interval != "none") section.notes.push_back(verdict_note(comparison, facts));
  if (against) section.notes.push_back(against_note(study, *against));
  const std::vector<BrokenRule> broken = broken_rules(study, comparison, facts);
  const std::vector<ProvenanceFact> origin = provenance(study);
  section.lead = make_lead(study, origin);
  section.parts = {rules_part(broken), provenance_part(origin)};
  Section runs = runs_part(rows, names);
  if (!runs.table.rows.empty()) section.parts.push_back(std::move(runs));
  if (!study.left_out.empty()) {
    section.parts.push_back(
        {.title = fmt::format("All records and runs left out: {}", study.left_out.size()),
         .notes = study.left_out,
         .shown = Visibility::on_pages,
         .is_folded = true});
  }
  section.facts =
      make_facts({{"workload", study.workload},
                  {"precision", study.precision},
                  {"scaling", to_string(study.scaling)},
                  {"work", work_json(study.work)},
                  {"base", comparison.base.text()},
                  {"reference_program", study.reference},
                  {"interval", interval},
                  {"controls", to_json(controls_table(check_controls(study, comparison)))},
                  {"broken_rules", rules_json(broken)},
                  {"provenance", provenance_json(origin)},
                  {"left_out", study.left_out}});
  return section;
}

}  // namespace paceline
