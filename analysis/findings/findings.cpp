#include "analysis/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "analysis/findings/best.h"
#include "analysis/findings/legend.h"
#include "analysis/study/labels.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

template <typename Value>
Range range_over(const SizeGroup& group, Value value) {
  Range range;
  for (const RowFacts* row : group.rows) range.add(value(*row));
  return range;
}

// "for 2, 3, 4 replicas": the base's size is left out.
std::vector<const SizeGroup*> several(const ScalingSeries& series) {
  return mapped_if(series.groups, std::not_fn(&SizeGroup::is_base),
                   [](const SizeGroup& group) { return &group; });
}

std::string cpus_text(const std::vector<const SizeGroup*>& groups) {
  Range cpus;
  for (const SizeGroup* group : groups) {
    for (const RowFacts* row : group->rows) {
      const Run& run = row->run();
      const auto count = run.replicas_are_cores()
                             ? run.cpus_per_replica()
                             : std::optional<double>(run->layout.cpus_per_task);
      if (count) cpus.add(*count);
    }
  }
  if (!(cpus.width() > 0)) return "";
  return fmt::format(" over {} {}",
                     groups.front()->rows.front()->run().replicas_are_cores() ? "CPUs per replica"
                                                                              : "cpus-per-task",
                     range_text(cpus, 0));
}

// What a run is compared by, as the table has it.
double shown_cost(const Run& run, const Unit& unit, bool rates) {
  return rates ? unit.shown(*run.samples_per_second) : *run.fit_seconds();
}

constexpr double kWideSpread = 1.25;
constexpr std::size_t kMostTimes = 6;

// A study that varies settings and no sizes asks for the fastest, on each machine by itself.
std::vector<Finding> settings_finding(const Study& study) {
  const bool comparable = study.scaling == Scaling::one_size && !study.axes.empty() &&
                          std::all_of(study.rows.begin(), study.rows.end(), [](const Row& row) {
                            return row.first()->kind == "measured" && reached_goal(row);
                          });
  if (!comparable) return {};
  return mapped(fastest_sentences(study), [](const std::string& sentence) {
    return Finding{FindingKind::settings, sentence};
  });
}

// A table of times shows neither rates nor efficiency, and a single run no spread.
std::string left_out_line(const Study& study, const std::vector<RowFacts>& facts) {
  Range rates, efficiencies;
  bool single = true;
  for (const RowFacts& row : facts) {
    if (row.run()->kind != "published" || !row.fit_seconds) return "";
    single = single && row.row->runs.size() == 1;
    if (row.samples_per_second && !row.run()->throughput->samples_per_second) {
      rates.add(row.samples_per_second->value);
    }
    if (row.speed_up && row.speed_up->efficiency && row.speed_up->ideal > 1) {
      efficiencies.add(*row.speed_up->efficiency);
    }
  }
  std::vector<std::string> parts;
  if (rates.low <= rates.high) {
    parts.push_back(fmt::format("the rate ({} {})", range_text(rates, 0), study.unit.rate()));
  }
  if (efficiencies.low <= efficiencies.high) {
    parts.push_back(fmt::format("efficiency ({} %)", range_text(efficiencies, 0, 100)));
    parts.push_back("the Karp-Flatt fraction");
  }
  if (single) parts.push_back("the spread (each row is one run)");
  return parts.empty() ? "" : "the published table does not state " + join(parts, ", ");
}

// By the phases: without what the row computes faster than its base.
std::optional<FairEfficiency> over_base_as_fast(const Study& study, const Comparison& comparison,
                                                const RowFacts& row) {
  const Row& base = study.rows[row.speed_up->base];
  const auto before = record_costs(base, comparison.rates),
             now = record_costs(*row.row, comparison.rates);
  if (!before || !now) return std::nullopt;
  const LossParts parts(base, *before, *row.row, *now, true);
  const auto gains = parts.certain_gains(study.rows.size() - 1);
  if (std::ranges::none_of(gains, [](const Loss& gain) { return gain.label == "compute"; })) {
    return std::nullopt;
  }
  return parts.all_but_compute()
      .transformed([](double lost) { return 1 - lost; })
      .match(
          [](const Known& known) {
            return std::optional(FairEfficiency{{known.value, known.interval},
                                                "a base that computes a sample as fast as it"});
          },
          [](double, const WeakEvidence&) { return std::optional<FairEfficiency>(); });
}

struct KindRow {
  std::string_view name, condition;
  OnScreen on_screen;
  int rank = 0;
};

constexpr KindRow kKinds[] = {
#define FINDING(name, condition, ...) {#name, condition, OnScreen::__VA_ARGS__},
#include "analysis/findings/finding_kinds.def"
#undef FINDING
};

}  // namespace

std::vector<Finding> unlike_runs(const Study& study, const Comparison& comparison,
                                 const std::vector<RowFacts>& facts) {
  double widest = kWideSpread;
  std::size_t rows = 0, worst = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Row& row = *facts[i].row;
    if (row.tainted || row.runs.size() < 2) continue;
    Range shown;
    for (const Run& run : row.runs) shown.add(shown_cost(run, study.unit, comparison.rates));
    const double spread = shown.high / shown.low;
    if (spread <= kWideSpread) continue;
    ++rows;
    if (spread > widest) worst = i;
    widest = std::max(widest, spread);
  }
  if (rows == 0) return {};
  std::vector<double> values = mapped(facts[worst].row->runs, [&](const Run& run) {
    return shown_cost(run, study.unit, comparison.rates);
  });
  std::sort(values.begin(), values.end());
  std::string times;
  if (values.size() > kMostTimes) {
    times = fmt::format("{:.3g} to {:.3g}", values.front(), values.back());
  } else {
    times = join(mapped(values, [](double value) { return fmt::format("{:.3g}", value); }), ", ");
  }
  const std::string name = point_names(study, mapped(facts, &RowFacts::row))[worst];
  const std::string which = rows == 1 ? name : fmt::format("{} rows", rows);
  std::vector<Finding> found = {
      {FindingKind::runs_differ,
       fmt::format("runs of {} differ widely{} ({} {}){}", which,
                   rows == 1 ? "" : ", those of " + name + " most", times,
                   comparison.rates ? study.unit.rate() : "s", why_unlike(*facts[worst].row))}};
  for (std::string& line : calmer_ratios_lines(study, comparison, facts, kWideSpread)) {
    found.push_back({FindingKind::runs_differ, std::move(line)});
  }
  return found;
}

Finding series_finding(const ScalingSeries& series, const Comparison& comparison) {
  std::vector<std::string> sizes, speed_ups, efficiencies, fractions;
  const auto groups = several(series);
  for (const SizeGroup* group : groups) {
    sizes.push_back(std::to_string(group->gpus));
    const auto value = [](const RowFacts& row) { return row.speed_up->ratio.estimate.value; };
    speed_ups.push_back(range_text(range_over(*group, value), 2));
    const auto efficiency = [](const RowFacts& row) {
      return row.speed_up->efficiency.value_or(0);
    };
    efficiencies.push_back(range_text(range_over(*group, efficiency), 0, 100));
    Hull fraction;
    for (const RowFacts* row : group->rows) {
      const auto& known = row->speed_up->karp_flatt;
      if (known) fraction.add(judged(*known, {}));
    }
    if (fraction.values.low <= fraction.values.high) fractions.push_back(fractions_text(fraction));
  }
  std::string line = series.name.empty() ? "" : series.name + ": ";
  if (comparison.base == Base::best) line += "best against best: ";
  line += fmt::format("speed-up {} for {} replicas{}, efficiency {} %", join(speed_ups, " / "),
                      join(sizes, ", "), cpus_text(groups), join(efficiencies, " / "));
  if (!fractions.empty()) line += ", Karp-Flatt " + join(fractions, " / ");
  return {FindingKind::speed_ups, line};
}

std::vector<Finding> causes_finding(const Study& study, const Comparison& comparison,
                                    const std::vector<Trend>& trends) {
  const bool is_asked = std::ranges::any_of(
      trends, [](const Trend& trend) { return trend.is_steady() && !trend.has_phases; });
  if (!is_asked) return {};
  const bool strong = study.scaling == Scaling::strong, times = !comparison.rates;
  std::string causes = "serial work on the input, or communication that grows with the replicas";
  if (strong) {
    causes = "serial work, or an all-reduce whose cost levels off, as a ring's does";
  } else if (times) {
    causes = "a fixed time per run, " + causes;
  }
  // Where such runs are in the table, their own sentence says what becomes of their loss.
  const bool of_fixed_steps = !strong && times;
  std::vector<std::string> advice;
  const bool has_null = std::any_of(study.rows.begin(), study.rows.end(), [](const Row& row) {
    return row.first()->layout.gpus > 1 && is_without_communication(row.first());
  });
  const Run& first = study.rows.front().first();
  const bool has_backends = !first.made_elsewhere() && !first->provenance.program;
  if (has_backends && !has_null) advice.emplace_back("runs with backend null");
  if (of_fixed_steps) advice.emplace_back("runs of one number of steps at every size");
  return {{FindingKind::causes_alike,
           "the cause may be " + causes + "; " +
               (advice.empty() ? "these numbers do not show which"
                               : join(advice, " and ") + " would show which")}};
}

std::vector<Finding> findings(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts) {
  std::vector<Finding> found = findings_about_runs(study, comparison, facts);
  const auto add = [&found](std::vector<Finding> more) {
    found.insert(found.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  };
  std::vector<Trend> all_trends;
  for (const ScalingSeries& series :
       make_scaling_series(study, comparison, facts, false, Quality::held)) {
    const std::vector<Trend> trends = fit_trends(study, comparison, series);
    found.push_back(series_finding(series, comparison));
    add(trend_findings(study, series, trends));
    add(phases_findings(series, trends, study.causes));
    all_trends.insert(all_trends.end(), trends.begin(), trends.end());
  }
  if (study.causes.are_named(1)) add(causes_finding(study, comparison, all_trends));
  add(settings_finding(study));
  add(quality_findings(study, facts));
  using enum FindingKind;
  for (auto& [kind, line] : {std::pair(left_out, left_out_line(study, facts)),
                             {implied_samples, implied_samples_line(study)},
                             {rate_off_time, rate_off_time_line(study)},
                             {above_peak, above_peak_line(study)},
                             {time_above_program, time_above_program_line(study)},
                             {far_cpus, far_cpus_line(study)}}) {
    if (!line.empty()) found.push_back({kind, line});
  }
  for (const ControlCheck& control : check_controls(study, comparison)) {
    found.push_back({FindingKind::control, control_line(control)});
  }
  return merge_alike(std::move(found));
}

std::vector<Finding> findings_about_rows(const Study& study, const Comparison& comparison,
                                         const std::vector<RowFacts>& facts) {
  using enum FindingKind;
  std::vector<Finding> found = findings(study, comparison, facts);
  std::erase_if(found, [](const Finding& finding) {
    const bool is_about_runs = finding.kind < speed_ups && finding.kind != one_session;
    return !is_about_runs &&
           std::ranges::count(
               std::array{hidden_loss, above_ideal, lower_quality, implied_samples, rate_off_time,
                          above_peak, time_above_program, far_cpus, control},
               finding.kind) == 0;
  });
  return found;
}

std::optional<FairEfficiency> find_fair_efficiency(const Study& study, const Comparison& comparison,
                                                   const std::vector<RowFacts>& facts,
                                                   const std::vector<std::string>& names,
                                                   std::size_t at) {
  const RowFacts& row = facts[at];
  if (!row.speed_up || row.speed_up->ideal <= 1) return std::nullopt;
  std::optional<FairEfficiency> least = over_base_as_fast(study, comparison, row);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const RowFacts& smaller = facts[i];
    if (!is_above_ideal(smaller) || smaller.speed_up->base != row.speed_up->base ||
        smaller.speed_up->ideal >= row.speed_up->ideal) {
      continue;
    }
    const double ideal = row.speed_up->ideal / smaller.speed_up->ideal;
    const Estimate efficiency =
        transformed(compute_ratio(*smaller.row, *row.row, comparison.rates).estimate,
                    [&](double ratio) { return ratio / ideal; });
    if (!efficiency.interval) continue;
    if (!least || efficiency.interval->low < least->value.interval->low) {
      least = {efficiency, names[i]};
    }
  }
  return least;
}

std::vector<Finding> merge_alike(std::vector<Finding> found) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::pair<Finding, std::vector<std::string>>> all;  // each with its subjects
  for (Finding& finding : found) {
    const bool is_of_series =
        finding.kind >= FindingKind::speed_ups && finding.kind <= FindingKind::settings;
    const std::size_t colon = is_of_series ? finding.text.find(": ") : std::string::npos;
    std::vector<std::string> subjects;
    if (colon != std::string::npos) {
      subjects.push_back(finding.text.substr(0, colon));
      finding.text.erase(0, colon);
    }
    const auto it = std::ranges::find_if(all, [&](const auto& other) {
      return other.first.kind == finding.kind && other.first.text == finding.text;
    });
    if (it == all.end()) {
      all.emplace_back(std::move(finding), std::move(subjects));
    } else if (!subjects.empty() && std::ranges::count(it->second, subjects[0]) == 0) {
      it->second.push_back(subjects[0]);
    }
  }
  found.clear();
  for (auto& [finding, subjects] : all) {
    finding.text.insert(0, join_first(kMostNames, subjects));
    found.push_back(std::move(finding));
  }
  return found;
}

Statement to_statement(const Finding& finding) {
  const KindRow& kind = kKinds[static_cast<std::size_t>(finding.kind)];
  Statement statement(finding.text);
  statement.on_screen = kind.on_screen;
  statement.rank = kind.rank;
  statement.weight = finding.weight;
  return statement;
}

std::string_view to_string(FindingKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].name;
}

std::string findings_markdown() {
  std::string page =
      "# Findings\n\n"
      "Each sentence of `report` and `explain` has a kind, which `explain --json` gives, and a "
      "condition. `paceline list findings --markdown`\nwrites this page.\n\n"
      "| kind | is printed if |\n| --- | --- |\n";
  for (const KindRow& kind : kKinds) {
    page += fmt::format("| `{}` | {} |\n", kind.name, kind.condition);
  }
  return page;
}

}  // namespace paceline
