#include "analysis/table/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "analysis/plots/study_plots.h"
#include "analysis/study/cost.h"
#include "analysis/study/labels.h"
#include "analysis/study/switches.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

enum class SizeVerdict {
  no_base,
  base,
  held,       // the whole interval is at the least efficiency or above
  below,      // the whole interval is below
  undecided,  // the interval contains it, or there is none
  worse,      // trained worse than its base, or than the row that trained best
};

struct SheetSize {
  RowFacts facts;
  std::string name;
  SizeVerdict verdict = SizeVerdict::no_base;
  WeakEvidence doubt;                  // why it is undecided, if not by its interval
  std::optional<FairEfficiency> fair;  // the same, as its base may be slow
  Standing standing;  // beside its base, or if that bars nothing, among all rows of the study

  int gpus() const { return facts.run()->layout.gpus; }
  bool is_scaled() const { return facts.speed_up && facts.speed_up->ideal > 1; }
};

// What the page is about: the rows of one series with their bases.
struct SheetData {
  Study study;
  std::string series;
  std::vector<std::string> other_series;
  Comparison comparison;
  std::vector<SheetSize> sizes;  // by GPUs

  std::vector<RowFacts> facts() const { return mapped(sizes, &SheetSize::facts); }
};

// That of the largest size, of these the fastest whose largest size trained as well as others.
// Series that skip work come last, before them those that trained worse at each size, and before
// these those of a single size.
std::size_t choose_sheet_series(const Study& study, const std::vector<RowSeries>& all,
                                const Comparison& comparison) {
  const std::vector<bool> spared = spared_work(study);
  const auto is_worse = [&](const Row* row) {
    return comparison.among_all[static_cast<std::size_t>(row - study.rows.data())].is_barred();
  };
  const auto rank = [&](const RowSeries& series) {
    const Row& largest = *series.rows.back();
    return std::tuple(!spared[static_cast<std::size_t>(&largest - study.rows.data())],
                      !std::ranges::all_of(series.rows, is_worse), series.rows.size() > 1,
                      largest.first()->layout.gpus, !is_worse(&largest),
                      -mean_cost(largest, comparison.rates).value);
  };
  return static_cast<std::size_t>(std::ranges::max_element(all, {}, rank) - all.begin());
}

// The rows of a series and their bases, by GPUs.
std::vector<std::size_t> indices_of_series(const Study& study, const RowSeries& series,
                                           const Comparison& comparison) {
  std::set<std::size_t> indices;
  for (const Row* row : series.rows) {
    const auto index = static_cast<std::size_t>(row - study.rows.data());
    indices.insert(index);
    if (const auto& speed_up = comparison.speed_ups[index]) indices.insert(speed_up->base);
  }
  std::vector<std::size_t> sorted(indices.begin(), indices.end());
  std::ranges::stable_sort(
      sorted, {}, [&](std::size_t index) { return study.rows[index].first()->layout.gpus; });
  return sorted;
}

void judge_size(SheetSize& size, const Study& study, double least) {
  const SpeedUp* speed_up = size.facts.speed_up;
  if (speed_up == nullptr || !size.facts.efficiency) return;
  const Row& base = study.rows[speed_up->base];
  const auto& interval = size.facts.efficiency->interval;
  size.doubt = find_weak_evidence(base, *size.facts.row);
  size.verdict = &base == size.facts.row                    ? SizeVerdict::base
                 : size.standing.is_barred()                ? SizeVerdict::worse
                 : size.doubt || !interval                  ? SizeVerdict::undecided
                 : lies_below(*interval, least)             ? SizeVerdict::below
                 : interval->low >= least * (1 - kRounding) ? SizeVerdict::held
                                                            : SizeVerdict::undecided;
}

SheetData make_sheet_data(const Study& study, const Base& base, double least) {
  const Comparison all = compare(study, base);
  const std::vector<RowSeries> series = make_row_series(study, all);
  if (series.empty()) {
    throw input_error("no point reached its goal in all of its runs",
                      study.rows.front().first().where, "train longer, or choose an easier goal");
  }
  const std::size_t chosen = choose_sheet_series(study, series, all);
  SheetData data;
  data.series = series[chosen].name;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string& name = series[i].name;
    if (i != chosen) data.other_series.push_back(name.empty() ? "one without a name" : name);
  }
  const std::vector<std::size_t> indices = indices_of_series(study, series[chosen], all);
  data.study = take_rows(study, indices);
  data.comparison = compare(data.study, base);
  if (base == Base::matched &&
      std::ranges::none_of(data.comparison.speed_ups, &std::optional<SpeedUp>::has_value)) {
    data.comparison = compare(data.study, Base::smallest);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    data.comparison.among_all[i] = all.among_all[indices[i]];
  }
  const std::vector<std::string> names = point_names(data.study);
  for (std::size_t i = 0; i < names.size(); ++i) {
    SheetSize& size = data.sizes.emplace_back();
    size.facts = row_facts(data.study, data.comparison, i);
    size.name = names[i];
    if (size.facts.speed_up) size.standing = size.facts.speed_up->standing;
    if (!size.facts.is_barred() && size.facts.is_worse_than_others()) {
      size.standing = *size.facts.among_all;
    }
    judge_size(size, data.study, least);
    // The legend would explain columns that the page does not have.
    size.facts.step_seconds.reset();
    size.facts.input_stall.reset();
  }
  const std::vector<RowFacts> facts = data.facts();
  for (std::size_t i = 0; i < names.size(); ++i) {
    SheetSize& size = data.sizes[i];
    if (size.verdict != SizeVerdict::held) continue;
    auto fair = find_fair_efficiency(data.study, data.comparison, facts, names, i);
    if (!fair || fair->value.interval->low >= least * (1 - kRounding)) continue;
    size.fair = std::move(fair);
    size.verdict = SizeVerdict::undecided;
  }
  return data;
}

// The largest that holds, or the base. Null: no size is larger than its base.
const SheetSize* choose_size(const std::vector<SheetSize>& sizes) {
  const SheetSize* chosen = nullptr;
  if (std::ranges::none_of(sizes, &SheetSize::is_scaled)) return nullptr;
  for (const SheetSize& size : sizes) {
    const bool holds = size.verdict == SizeVerdict::base ||
                       (size.verdict == SizeVerdict::held && size.is_scaled());
    if (holds && (!chosen || size.gpus() > chosen->gpus())) chosen = &size;
  }
  return chosen;
}

std::string least_text(double least) {
  return fmt::format("{:g} %", 100 * least);
}

std::string size_verdict_text(const SheetSize& size, const std::string& common, double least) {
  const std::string label = row_label(*size.facts.row);
  std::vector<std::string> parts = {
      size.verdict == SizeVerdict::base        ? "base"
      : size.verdict == SizeVerdict::held      ? "at least " + least_text(least)
      : size.verdict == SizeVerdict::below     ? "below " + least_text(least)
      : size.verdict == SizeVerdict::undecided ? "cannot tell"
                                               : "",
      size.facts.quality_label(), label == common ? "" : label};
  std::erase(parts, "");
  return join(parts, "; ");
}

Cell hours_of_runs(const Estimate& hours) {
  return estimate_cell(hours, decimals_for(hours.value, 3));
}

Table make_size_table(const SheetData& data, double least) {
  using Size = const SheetSize&;
  const Study& study = data.study;
  const auto of_facts = [](const RunFact& fact, std::function<Cell(const RowFacts&)> make) {
    return [cell = of_runs(fact, std::move(make))](Size size) { return cell(size.facts); };
  };
  const auto hours = [&](const RunFact& fact) {
    return of_facts(fact, [fact](const RowFacts& facts) {
      const auto value = mean_amount(*facts.row, fact);
      return value ? hours_of_runs(*value) : Cell{};
    });
  };
  const std::string common = common_label(study);
  ColumnsOf<SheetSize> columns;
  columns.text("size", "size", &SheetSize::name)
      .whole("nodes", "nodes", [](Size size) { return size.facts.run()->layout.nodes; })
      .whole("gpus", "", &SheetSize::gpus)
      .programs()
      .real("cpus", "CPUs",
            [](Size size) {
              const auto each = size.facts.run().cpus_per_replica();
              return each ? number(*each * size.gpus(), 0) : Cell{};
            })
      .detail(4)
      .whole("runs", "runs", [](Size size) { return size.facts.row->runs.size(); })
      .detail(5)
      .interval("fit_seconds", "fit\nseconds",
                of_facts(&Run::fit_seconds,
                         [](const RowFacts& facts) { return measured_cell(facts.fit_seconds); }))
      .detail(data.comparison.rates ? 3 : 0)
      .interval(study.unit.rate_key(), study.unit.rate(),
                of_facts(&Run::samples_per_second,
                         [unit = study.unit](const RowFacts& facts) {
                           return rate_cell(unit, facts.samples_per_second);
                         }))
      .set(&Column::shown, data.comparison.rates)
      .interval("speed_up", "speed-up",
                [](Size size) {
                  const auto ratio = size.facts.ratio();
                  return ratio ? estimate_cell(*ratio, 2) : Cell{};
                })
      .essential()
      .interval("efficiency", "efficiency",
                [](Size size) { return percent_estimate(size.facts.efficiency, 1); })
      .essential()
      .interval("node_hours", "node-hours\na run", hours(node_hours))
      .interval("gpu_hours", "GPU-hours\na run", hours(gpu_hours))
      .detail(1)
      .interval("core_hours", "core-hours\na run", hours(core_hours))
      .set(&Column::shown, study.replicas_are_cores)
      .detail(1)
      .text("verdict", "verdict", [&](Size size) { return size_verdict_text(size, common, least); })
      .detail(2);
  if (interval_kinds(data.comparison) == "mixed") {
    columns.text("interval", "interval", [](Size size) { return size.facts.interval_kind(); })
        .detail(6);
  }
  return columns.table(data.sizes, "sizes");
}

// The table of sizes.

std::string describe_base(const SheetData& data) {
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < data.sizes.size(); ++i) {
    const SpeedUp* speed_up = data.sizes[i].facts.speed_up;
    if (speed_up && speed_up->base != i) used.insert(speed_up->base);
  }
  std::vector<std::string> bases;
  for (const std::size_t i : used) {
    const double cost = mean_cost(data.study.rows[i], data.comparison.rates).value;
    bases.push_back(data.sizes[i].name + ", " +
                    (data.comparison.rates ? data.study.unit.text(1 / cost) : seconds_text(cost)));
  }
  if (bases.empty()) return "No speed-up: no size has another one as its base";
  return fmt::format("Base: {}. Efficiency: the speed-up over the ideal one, {} over the base's",
                     join(bases, "; "), data.study.replicas_are_cores ? "replicas" : "GPUs");
}

Section scaling_section(const Study& study, const SheetData& data, double least) {
  Section section{.title = "Scaling", .headline = describe_base(data)};
  section.table = make_size_table(data, least);
  const std::vector<RowFacts> facts = data.facts();
  section.plots = study_plots({data.study, data.comparison, facts, study_title(data.study)});
  std::erase_if(section.plots, [](const Plot& plot) { return plot.name != kSpeedUpPlot; });
  const auto found = findings_about_rows(data.study, data.comparison, facts);
  for (const Finding& finding : found) section.findings.emplace_back(finding.text);
  std::vector<std::string> above;
  for (const SheetSize& size : data.sizes) {
    if (is_above_ideal(size.facts)) above.push_back(size.name);
  }
  if (!above.empty() && std::ranges::count(found, FindingKind::above_ideal, &Finding::kind) == 0) {
    section.findings.emplace_back("above the ideal line: " + join(above, "; ") +
                                  above_ideal_question(data.study));
  }
  std::vector<std::string> failed;
  for (const SheetSize& size : data.sizes) {
    const std::size_t count = size.facts.row->failed.size();
    if (count > 0) failed.push_back(fmt::format("{} ({})", size.name, counted(count, "attempt")));
  }
  if (!failed.empty()) {
    section.findings.emplace_back("hours of attempts without a result are not counted: " +
                                  join(failed, "; "));
  }
  if (section.plots.empty()) {
    section.findings.emplace_back("there is no plot: no size is larger than its base");
  }
  if (!data.other_series.empty()) {
    constexpr std::size_t kMost = 4;
    section.findings.emplace_back(fmt::format(
        "of {} series this is {}; --only chooses another: {}", data.other_series.size() + 1,
        data.series.empty() ? "the one without a name" : data.series,
        join_first(kMost, data.other_series, "; ")));
  }
  if (const auto missed =
          std::ranges::count_if(study.rows, [](const Row& row) { return !reached_goal(row); });
      missed > 0) {
    section.findings.emplace_back(fmt::format(
        "left aside: {} of which some run did not reach its goal", counted(missed, "point")));
  }
  return section;
}

std::vector<std::string> sheet_notes(const Study& study, const SheetData& data) {
  std::vector<std::string> notes =
      legend(data.study, data.comparison, data.facts(), interval_kinds(data.comparison));
  std::ranges::move(caveats(data.study, data.comparison), std::back_inserter(notes));
  notes.emplace_back(
      "hours a run: nodes, GPUs or cores, each as a whole, times setup, training, evaluation and "
      "checkpoints as far as they are recorded, without the job's start; arithmetic means");
  if (!study.left_out.empty()) {
    notes.push_back(fmt::format(
        "records and runs of the study that are in no row: {}; paceline report lists them",
        study.left_out.size()));
  }
  return notes;
}

// The size to apply for, and why.

std::string with_efficiency(const SheetSize& size) {
  return fmt::format("{} ({})", size.name, percent_estimate(size.facts.efficiency, 1).text);
}

std::string list_verdicts(const SheetData& data, SizeVerdict verdict) {
  std::vector<std::string> names;
  for (const SheetSize& size : data.sizes) {
    if (size.verdict != verdict) continue;
    std::string name = size.facts.efficiency ? with_efficiency(size) : size.name;
    if (verdict == SizeVerdict::undecided && size.doubt) name += ", " + size.doubt.text();
    if (size.fair) {
      name +=
          fmt::format(", {} over {}", percent_estimate(size.fair->value, 1).text, size.fair->over);
    }
    if (verdict == SizeVerdict::worse) {
      name += ", " + size.facts.quality_label();
      if (!size.standing.is_of_work()) name += ": " + size.standing.values;
    }
    names.push_back(std::move(name));
  }
  return join(names, "; ");
}

void add_cost_of(const SheetSize& chosen, Section& section) {
  const Row& row = *chosen.facts.row;
  std::vector<std::string> hours;
  const auto add = [&](const RunFact& fact, const char* noun) {
    const auto value = mean_amount(row, fact);
    if (value) hours.push_back(hours_of_runs(*value).text + " " + noun);
  };
  add(node_hours, "node-hours");
  add(gpu_hours, "GPU-hours");
  if (chosen.facts.run().replicas_are_cores()) add(core_hours, "core-hours");
  section.findings.emplace_back(hours.empty()
                                    ? "the hours of a run are not known: no time is recorded"
                                    : "a run there takes " + join(hours, ", "));
  if (const std::size_t failed = row.failed.size(); failed > 0 && !hours.empty()) {
    const std::size_t ended = row.runs.size() + row.aside.size();
    section.findings.emplace_back(fmt::format(
        "{} of {} attempts there ended without a result: if those take as long as others, plan "
        "{:.2f} times these hours for a run",
        failed, ended + failed, static_cast<double>(ended + failed) / static_cast<double>(ended)));
  }
  if (!hours.empty() && !chosen.facts.run()->layout.nodes) {
    section.findings.emplace_back("node-hours are not known: its nodes are not recorded");
  }
}

std::string choice_headline(const SheetData& data, const SheetSize* chosen, double least) {
  if (chosen == nullptr) {
    const bool one = std::ranges::all_of(
        data.sizes, [&](const SheetSize& size) { return size.gpus() == data.sizes[0].gpus(); });
    return "No size can be chosen: " +
           std::string(one ? "there is only one size, so nothing shows how it scales; run others"
                           : "no size has a smaller one as its base");
  }
  const bool is_fair =
      std::ranges::any_of(data.sizes, [](const SheetSize& size) { return size.fair.has_value(); });
  const char* beside = is_fair ? ", also over what computes faster than the base" : "";
  if (chosen->verdict == SizeVerdict::base) {
    return fmt::format(
        "{}, the base: no larger size has a parallel efficiency of at least {} with its whole 95 % "
        "interval{}",
        chosen->name, least_text(least), beside);
  }
  const auto& nodes = chosen->facts.run()->layout.nodes;
  return fmt::format(
      "{}{}: the largest size whose parallel efficiency is at least {} with its whole 95 % "
      "interval{}",
      chosen->name,
      nodes && !chosen->facts.row->distinct_nodes ? " on " + counted(*nodes, "node") : "",
      least_text(least), beside);
}

Section choice_section(const SheetData& data, const SheetSize* chosen, double least) {
  Section section{.title = "The size to apply for",
                  .headline = choice_headline(data, chosen, least)};
  const auto add = [&](const std::string& what, const std::string& names) {
    if (!names.empty()) section.findings.emplace_back(what + names);
  };
  if (chosen != nullptr) {
    if (chosen->verdict == SizeVerdict::held) {
      add("its efficiency: ", percent_estimate(chosen->facts.efficiency, 1).text + ", speed-up " +
                                  estimate_cell(*chosen->facts.ratio(), 2).text);
    }
    add("", chosen->standing.doubt());
    add_cost_of(*chosen, section);
    const bool has_larger_gap = std::ranges::any_of(
        data.study.gaps, [&](const Row& gap) { return gap.first()->layout.gpus > chosen->gpus(); });
    if (chosen == &data.sizes.back() && !has_larger_gap) {
      section.findings.emplace_back(
          "it is the largest size of the table: measure larger ones, which may do, too");
    }
  }
  add("below with the whole interval: ", list_verdicts(data, SizeVerdict::below));
  add("cannot be judged: ", list_verdicts(data, SizeVerdict::undecided));
  add("left aside: ", list_verdicts(data, SizeVerdict::worse));
  if (chosen != nullptr) {
    add("without a base: ", list_verdicts(data, SizeVerdict::no_base));
    const SheetSize* by_mean = nullptr;
    bool is_open = false;
    for (const SheetSize& size : data.sizes) {
      const bool is_undecided = size.verdict == SizeVerdict::undecided && !size.fair;
      if (!is_undecided || size.gpus() <= chosen->gpus()) continue;
      is_open = is_open || size.facts.run()->kind == "measured";
      if (size.facts.efficiency->value >= least) by_mean = &size;
    }
    if (by_mean != nullptr) {
      add("the largest by the means alone, which do not decide: ", with_efficiency(*by_mean));
    }
    if (is_open) {
      section.findings.emplace_back(
          "run more repeats of the sizes that cannot be judged, and of the base, to decide");
    }
  }
  std::vector<std::string> gaps = point_names(data.study, pointers_to(data.study.gaps));
  for (std::size_t i = 0; i < gaps.size(); ++i) gaps[i] += " (" + data.study.gaps[i].gap + ")";
  add("without a result: ", join(gaps, "; "));
  return section;
}

}  // namespace

Document sheet_document(const Study& study, const Base& base, double least_efficiency) {
  const SheetData data = make_sheet_data(study, base, least_efficiency);
  const SheetSize* chosen = choose_size(data.sizes);
  const std::vector<ProvenanceFact> origins = list_origins(data.study);
  Document document{.name = "sheet",
                    .title = "Scaling of " + study_title(data.study),
                    .warnings = data.study.warnings,
                    .stands_alone = true};
  document.sections = {origin_section(data.study, origins),
                       scaling_section(study, data, least_efficiency),
                       choice_section(data, chosen, least_efficiency)};
  document.notes = sheet_notes(study, data);
  Json choice;  // null
  if (chosen) {
    choice =
        to_json(document.sections[1].table)[static_cast<std::size_t>(chosen - data.sizes.data())];
  }
  document.facts = make_facts({{"workload", data.study.workload},
                               {"precision", data.study.precision},
                               {"scaling", to_string(data.study.scaling)},
                               {"series", data.series},
                               {"base", data.comparison.base.text()},
                               {"least_efficiency", least_efficiency},
                               {"chosen", std::move(choice)},
                               {"provenance", provenance_json(origins)}});
  return document;
}

}  // namespace paceline
