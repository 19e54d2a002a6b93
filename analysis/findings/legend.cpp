#include "analysis/findings/legend.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "analysis/document/columns.h"
#include "analysis/study/comparison.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

constexpr double kUnlikeChoices = 0.02;  // of a row's fit seconds

std::size_t count_sequential_rows(const std::vector<RowFacts>& facts) {
  return count_where(
      facts, [](const RowFacts& row) { return find_stopping(*row.row) == Stopping::by_results; });
}

std::string sequential_note(const std::vector<RowFacts>& facts) {
  const std::size_t count = count_sequential_rows(facts);
  if (count == 0) return "";
  return fmt::format(
      "sequential: results decided how many runs {} of {} rows have, so their 95 % intervals are "
      "anytime-valid: wider than Student's, and right after any number of looks",
      count, facts.size());
}

std::string interval_note(const std::vector<RowFacts>& facts, const std::string& kinds) {
  const bool pooled = facts.front().row->pooled;
  const char* unit = pooled ? "session" : "run";
  std::size_t single = 0;
  for (const RowFacts& row : facts) single += units_in(*row.row) < 2 ? 1 : 0;
  if (single == facts.size()) {
    return facts.front().run()->kind == "published"
               ? "the published pages state no spread, so there are no intervals"
           : facts.front().run()->kind == "imported"
               ? "import at least 3 runs of each row: one run gives no interval"
               : fmt::format("run at least 3 {}: one {} a row gives no interval",
                             pooled ? "sessions" : "repeats", unit);
  }
  const std::size_t sequential = count_sequential_rows(facts);
  std::string note = fmt::format(
      "times and rates are typical ones: geometric means over {0}. ± is the larger side of their "
      "95 % interval ({1}); above {2:g} %, the cell has [low, high] instead. It assumes {0} that "
      "vary alike: rare slow ones may lie outside. Speed-up: ",
      pooled ? "sessions" : "runs",
      sequential == 0              ? "Student's t on logarithms"
      : sequential == facts.size() ? "anytime-valid, on logarithms"
                                   : "on logarithms; Student's t, or anytime-valid, see below",
      100 * kWideMargin);
  if (kinds == "paired") {
    note += pooled ? "paired interval, by session" : "paired interval, from runs of the same round";
  } else if (kinds == "welch") {
    note += fmt::format(
        "{}, as not all rows have the same {}s",
        sequential > 0 ? "Welch's interval, or the sum of both rows' where one is anytime-valid"
                       : "Welch's interval",
        pooled ? "session" : "round");
  } else if (kinds == "mixed") {
    note += fmt::format(
        "paired interval where rows have the same {}s, Welch's elsewhere (column interval)",
        pooled ? "session" : "round");
  } else {
    note += "no interval";
  }
  if (single > 0) note += fmt::format(". Rows of one {} have no interval", unit);
  return note;
}

// Ratios that are not those of the times beside them.
std::string sessions_note(const Study& study, const Comparison& comparison) {
  const auto cost = [&](std::size_t i) { return mean_cost(study.rows[i], comparison.rates).value; };
  std::size_t within = 0;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const auto& speed_up = comparison.speed_ups[i];
    if (!speed_up) continue;
    const double off = speed_up->ratio.estimate.value * cost(i) / cost(speed_up->base) - 1;
    within += std::abs(off) > kRounding ? 1 : 0;
  }
  if (within == 0) return "";
  return counted(within, "speed-up") +
         " within sessions: the ratio of runs of the same sessions, not of the times shown";
}

std::string base_name(const Run& run, const std::vector<std::string>& axes) {
  std::vector<std::string> parts;
  if (!run.system.empty()) parts.push_back(run.system);
  if (!run.backend.empty()) parts.push_back(run.backend);
  const std::string cpus = cpus_of_run(run, "per replica");
  if (!cpus.empty()) parts.push_back(cpus);
  for (const std::string& axis : axes) {
    if (const auto value = run->parameters.text(axis)) parts.push_back(axis + " " + *value);
  }
  return join(parts, ", ");
}

// Rows of several replicas are compared with one replica of their backend, else without one.
// Programs of the user's own may have none.
std::string describe_backends(const std::vector<RowFacts>& facts) {
  bool own = false, borrowed = false;
  for (const RowFacts& row : facts) {
    if (!row.speed_up || row.run()->layout.gpus == 1 || row.run().backend.empty()) continue;
    (facts[row.speed_up->base].run().backend == row.run().backend ? own : borrowed) = true;
  }
  return own ? (borrowed ? " of the same backend or of none" : " of the same backend")
             : (borrowed ? " without a backend" : "");
}

std::string describe_rule(const Base& base, const std::vector<RowFacts>& facts) {
  switch (base.kind) {
    case Base::matched: {
      const Run& run = facts.front().run();
      const std::string rule = "base matched: one replica" + describe_backends(facts);
      if (!run->layout.cpus_per_task) return rule;
      return rule + (run.replicas_are_cores() ? ", same CPUs per replica" : ", same cpus-per-task");
    }
    case Base::best:
      return "base best: the fastest row of one replica";
    case Base::smallest:
      return "base smallest: the row of the fewest replicas that is the same otherwise";
    case Base::setting:
      break;
  }
  if (base.compares_sizes()) {
    return fmt::format("base {}: the row of this size that is the same otherwise", base.text());
  }
  return fmt::format(
      "base {}: the row of this value that is the same otherwise (--base {}=VALUE chooses another)",
      base.text(), base.axis);
}

// Suggests a base for rows of one size: the first value of a setting that differs between them.
std::string suggest_other_base(const Study& study) {
  std::vector<std::string> axes = study.axes;
  axes.emplace_back("backend");
  for (const std::string& axis : axes) {
    std::set<std::string> values;
    std::string first;
    for (const Row& row : study.rows) {
      const auto value = row.first()->parameters.text(axis);
      if (!value) continue;
      if (values.empty()) first = *value;
      values.insert(*value);
    }
    if (values.size() > 1) return fmt::format("; use --base {}", axis + "=" + first);
  }
  return "";
}

// Every base that another row is compared with.
std::string base_note(const Study& study, const Comparison& comparison,
                      const std::vector<RowFacts>& facts) {
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].speed_up && (facts[i].run()->layout.gpus > 1 || facts[i].speed_up->base != i)) {
      used.insert(facts[i].speed_up->base);
    }
  }
  const std::string note = describe_rule(comparison.base, facts);
  if (used.empty()) return note + "; there is none" + suggest_other_base(study);
  std::vector<std::string> bases;
  for (const std::size_t i : used) {
    const RowFacts& base = facts[i];
    const std::string value = comparison.rates ? study.unit.text(base.samples_per_second->value)
                                               : seconds_text(base.fit_seconds->value);
    const std::string name = base_name(base.run(), study.axes);
    bases.push_back(value + (name.empty() ? "" : " (" + name + ")"));
  }
  return note + ": " + join(bases, "; ");
}

template <typename Field>
void add_distinct(std::vector<std::string>& notes, const char* prefix,
                  const std::vector<RowFacts>& facts, Field field) {
  std::set<std::string> seen;
  for (const RowFacts& row : facts) {
    for (const Run& run : row.row->runs) {
      const std::string text = field(run);
      if (!text.empty() && seen.insert(text).second) notes.push_back(prefix + text);
    }
  }
}

// The sources of numbers that Paceline did not measure, and what these include.
void add_foreign_notes(std::vector<std::string>& notes, const std::vector<RowFacts>& facts) {
  const auto add_field = [&](const char* kind, const char* prefix, std::string Provenance::*field) {
    add_distinct(notes, prefix, facts,
                 [&](const Run& run) { return run->kind == kind ? run->provenance.*field : ""; });
  };
  add_field("published", "published by ", &Provenance::source);
  add_field("published", "published time: ", &Provenance::time_is);
  add_field("published", "published rate: ", &Provenance::rate_is);
  add_distinct(notes, "imported from ", facts, [](const Run& run) {
    const auto& imported = run->provenance.imported;
    return imported ? imported->tool : "";
  });
  add_field("imported", "imported time: ", &Provenance::time_is);
  add_field("imported", "imported rate: ", &Provenance::rate_is);
}

// "10", "0 to 10".
std::string format_counts(const std::set<int>& counts) {
  return *counts.begin() == *counts.rbegin()
             ? std::to_string(*counts.begin())
             : fmt::format("{} to {}", *counts.begin(), *counts.rbegin());
}

std::string warmup_note(const std::vector<RowFacts>& facts) {
  std::set<int> warmups;
  bool by_program = false;
  for (const RowFacts& row : facts) {
    if (!row.step_seconds) continue;
    for (const Run& run : row.row->runs) {
      by_program = by_program || run->provenance.program;
      warmups.insert(static_cast<int>(run->timing->warmup_steps_excluded.value_or(0)));
    }
  }
  if (warmups.empty()) return "";
  if (by_program) return "step ms: median of the steps that the program reports";
  return "step ms: median step of the slowest rank" +
         (*warmups.rbegin() == 0
              ? std::string()
              : fmt::format("; the first {} steps are left out", format_counts(warmups)));
}

// What fit seconds and rates of measured runs include.
// Of a program of the user's.
std::string describe_rate(const Run& run, const Unit& unit) {
  if (!run->provenance.rate_is.empty()) return run->provenance.rate_is;
  if (run->throughput->samples_per_second) return "as the program reports them";
  return (unit.is_own() ? "replicas, each with its own work," : unit.name) + " over fit seconds";
}

void add_clock_notes(std::vector<std::string>& notes, const std::vector<RowFacts>& facts,
                     const Unit& unit) {
  std::set<int> warmups;
  bool measured = false;
  std::set<std::string> of_programs;
  for (const RowFacts& row : facts) {
    for (const Run& run : row.row->runs) {
      if (run->kind != "measured") continue;
      if (run->provenance.program) {
        if (run.samples_per_second)
          of_programs.insert(unit.rate() + ": " + describe_rate(run, unit));
        if (!run.fit_seconds()) continue;
        of_programs.insert("fit seconds: " + (run->provenance.time_is.empty()
                                                  ? "as the program reports them"
                                                  : run->provenance.time_is));
        continue;
      }
      measured = true;
      const auto& excluded = run->throughput->warmup_steps_excluded;
      if (excluded) warmups.insert(static_cast<int>(*excluded));
    }
  }
  notes.insert(notes.end(), of_programs.begin(), of_programs.end());
  if (!measured) return;
  notes.push_back(
      "fit seconds: barrier to barrier on the slowest rank, with choice of algorithms and first "
      "epoch, without evaluation and checkpoints");
  if (!warmups.empty()) {
    notes.push_back(unit.rate() + ": of all replicas, without the choice of algorithms" +
                    (*warmups.rbegin() == 0
                         ? std::string()
                         : fmt::format(" and the first {} steps", format_counts(warmups))));
  }
}

// A GPU's first run measures which algorithms are fast; later runs read the choices that it saved.
std::string choices_note(const std::vector<RowFacts>& facts) {
  double most = 0;
  std::size_t rows = 0;
  for (const RowFacts& row : facts) {
    double least = std::numeric_limits<double>::infinity(), here = 0;
    for (const Run& run : row.row->runs) {
      const auto& seconds = run->timing->compile_seconds;
      if (run.replicas_are_cores() || !seconds || !run->throughput->warmup_steps_excluded) continue;
      least = std::min(least, *seconds);
      here = std::max(here, *seconds);
    }
    if (!row.fit_seconds || here - least <= kUnlikeChoices * row.fit_seconds->value) continue;
    ++rows;
    most = std::max(most, here - least);
  }
  if (rows == 0) return "";
  return fmt::format(
      "some runs of {} took up to {} longer to choose algorithms: the first run on a machine "
      "measures what later ones read (gpu-choices.json)",
      counted(rows, "row"), format_seconds(most));
}

// "16 to 18 % [14, 20]": a range of values, and the hull of their intervals.
std::string hull_text(const Hull& hull, int digits, double scale, const char* unit) {
  const std::string text = range_text(hull.values, digits, scale) + unit;
  if (!hull.is_known) return text;
  return text + fmt::format(" [{:.{}f}, {:.{}f}]", hull.intervals.low * scale, digits,
                            hull.intervals.high * scale, digits);
}

}  // namespace

std::vector<std::string> legend(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts,
                                const std::string& interval_kinds) {
  std::vector<std::string> notes;
  notes.push_back(interval_note(facts, interval_kinds));
  if (std::string note = sequential_note(facts); !note.empty()) notes.push_back(std::move(note));
  add_clock_notes(notes, facts, study.unit);
  const bool all_reached =
      std::ranges::all_of(facts, [](const RowFacts& row) { return reached_goal(*row.row); });
  add_distinct(
      notes,
      all_reached ? "fit seconds end with the first evaluation of "
                  : "fit seconds end with the last epoch, or earlier with the first evaluation of ",
      facts, [](const Run& run) { return run.goal; });
  notes.push_back(fmt::format("speed-up: ratio of {}; {}",
                              comparison.rates ? study.unit.rate() : "fit seconds",
                              base_note(study, comparison, facts)));
  if (comparison.base == Base::best && interval_kinds != "none") {
    notes.push_back("choosing the best of several rows after the fact flatters them a little");
  }
  notes.push_back(fmt::format("scaling type {}: {}", to_string(study.scaling),
                              describe_scaling(study.scaling, facts.front().run())));
  for (const std::string& note :
       {sessions_note(study, comparison), warmup_note(facts), choices_note(facts)}) {
    if (!note.empty()) notes.push_back(note);
  }
  if (std::ranges::any_of(facts, [](const RowFacts& row) { return row.input_stall.has_value(); })) {
    notes.push_back(
        "input stall, exposed comm.: the share of step time in which ranks wait for samples, or "
        "for each other");
  }
  add_foreign_notes(notes, facts);
  std::ranges::move(machine_notes(study), std::back_inserter(notes));
  return notes;
}

std::vector<std::string> caveats(const Study& study, const Comparison& comparison) {
  std::vector<std::string> lines = comparison.notes;
  lines.insert(lines.end(), study.notes.begin(), study.notes.end());
  return lines;
}

void Hull::add(const Judged& judged) {
  values.add(judged.value());
  judged.match(
      [&](const Known& known) {
        intervals.add(known.interval.low);
        intervals.add(known.interval.high);
      },
      [&](double, const WeakEvidence&) { is_known = false; });
}

std::string range_text(const Range& range, int digits, double scale) {
  const std::string low = fmt::format("{:.{}f}", range.low * scale, digits);
  const std::string high = fmt::format("{:.{}f}", range.high * scale, digits);
  return low == high ? low : low + " to " + high;
}

std::string fractions_text(const Hull& hull) {
  int digits = fraction_digits(hull.largest());
  if (hull.is_known && hull.intervals.width() > 0) {
    const double half = hull.intervals.width() / 2;
    digits = std::clamp(decimals_for(half, 2), 2, std::max(2, digits));
  }
  return hull_text(hull, digits, 1, "");
}

std::string percent_text(const Hull& hull) {
  const double size = hull.is_known ? hull.intervals.width() : hull.largest();
  const auto [fine, finer] = hull.is_known ? std::pair(0.05, 0.002) : std::pair(0.1, 0.02);
  const bool is_exact = hull.is_known && size < kRounding;
  const int digits = is_exact ? 1 : size < finer ? 2 : size < fine ? 1 : 0;
  return hull_text(hull, digits, 100, " %");
}

}  // namespace paceline
