#include "analysis/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/findings/best.h"
#include "analysis/findings/implied_samples.h"
#include "analysis/findings/lower_quality.h"
#include "analysis/study/control.h"
#include "analysis/study/point_names.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double width() const { return high - low; }
};

std::string range_text(const Range& range, int digits, double scale = 1) {
  const std::string low = fmt::format("{:.{}f}", range.low * scale, digits);
  const std::string high = fmt::format("{:.{}f}", range.high * scale, digits);
  return low == high ? low : low + " to " + high;
}

// Of Karp-Flatt fractions.
std::string fractions_text(const Range& range) {
  return range_text(range, fraction_digits(std::max(std::abs(range.low), std::abs(range.high))));
}

template <typename Value>
Range range_over(const SizeGroup& group, Value value) {
  Range range;
  for (const RowFacts* row : group.rows) range.add(value(*row));
  return range;
}

// "for 2, 3, 4 replicas": one replica is left out.
std::vector<const SizeGroup*> several(const ScalingSeries& series) {
  std::vector<const SizeGroup*> groups;
  for (const SizeGroup& group : series.groups) {
    if (group.gpus > 1) groups.push_back(&group);
  }
  return groups;
}

std::string cpus_text(const std::vector<const SizeGroup*>& groups) {
  Range cpus;
  for (const SizeGroup* group : groups) {
    for (const RowFacts* row : group->rows) {
      const Run& run = row->run();
      const auto count = run.replicas_are_cores ? run.cpus_per_replica()
                                                : std::optional<double>(run.cpus_per_task);
      if (count) cpus.add(*count);
    }
  }
  if (!(cpus.width() > 0)) return "";
  return fmt::format(
      " over {} {}",
      groups.front()->rows.front()->run().replicas_are_cores ? "CPUs per replica" : "cpus-per-task",
      range_text(cpus, 0));
}

// Of trends of one kind and the same sizes; several where they differ in their CPUs.
using Alike = std::vector<const Trend*>;

std::vector<Alike> grouped_by_kind(const std::vector<Trend>& trends) {
  std::vector<Alike> groups;
  for (const Trend& trend : trends) {
    const auto like = [&](const Alike& group) {
      const Trend& other = *group.front();
      return other.kind == trend.kind && other.doubt == trend.doubt &&
             std::ranges::equal(other.sizes, trend.sizes, {}, &SizeOfTrend::gpus,
                                &SizeOfTrend::gpus);
    };
    const auto it = std::find_if(groups.begin(), groups.end(), like);
    (it == groups.end() ? groups.emplace_back() : *it).push_back(&trend);
  }
  return groups;
}

template <typename Value>
Range range_of(const Alike& trends, Value value) {
  Range range;
  for (const Trend* trend : trends) {
    for (const SizeOfTrend& size : trend->sizes) range.add(value(size));
  }
  return range;
}

template <typename Value>
Range range_at(const Alike& trends, bool last, Value value) {
  Range range;
  for (const Trend* trend : trends) {
    range.add(value(last ? trend->sizes.back() : trend->sizes.front()));
  }
  return range;
}

double fraction_of(const SizeOfTrend& size) {
  return size.fraction;
}
double added_of(const SizeOfTrend& size) {
  return size.added;
}

class TrendSentence {
 public:
  TrendSentence(const Study& study, Alike trends)
      : scaling_(study.scaling),
        what_(compares_rates(study.scaling) ? "what an added replica adds to the time per step"
                                            : "the Karp-Flatt fraction"),
        trends_(std::move(trends)) {}

  std::string text() const {
    switch (trends_.front()->kind) {
      case TrendKind::slower_than_one:
        return "several replicas are slower than one: no law of scaling applies" + as_far_as_told();
      case TrendKind::no_loss:
        return no_loss();
      case TrendKind::above_ideal:
        return "N replicas are more than N times as fast as one" + as_far_as_told() +
               ": is the base slow, or does the share of each fit into its cache?";
      case TrendKind::one_size:
        return "";
      case TrendKind::steady:
        return steady();
      case TrendKind::grows:
      case TrendKind::falls:
        return changes();
      case TrendKind::uneven:
        return uneven();
      case TrendKind::unclear:
        return unclear();
      case TrendKind::unjudged:
        return fmt::format(
            "{} goes from {} on {} to {} on {} replicas: rows of {} cannot tell whether that is "
            "more than noise",
            what_, at(false), size(false), at(true), size(true), trends_.front()->doubt.text());
    }
    return "";
  }

 private:
  int size(bool last) const {
    const auto& sizes = trends_.front()->sizes;
    return (last ? sizes.back() : sizes.front()).gpus;
  }

  bool is_strong() const { return scaling_ == Scaling::strong; }

  // "0.181", of rates, which have no Karp-Flatt fraction by name, "18 %".
  std::string shown(const Range& range) const {
    return compares_rates(scaling_) ? percent(range) : fractions_text(range);
  }
  std::string at(bool last) const { return shown(range_at(trends_, last, fraction_of)); }
  static std::string percent(const Range& range) {
    const double most = std::max(std::abs(range.low), std::abs(range.high));
    return range_text(range, most < 0.02 ? 2 : most < 0.1 ? 1 : 0, 100) + " %";
  }

  // What the numbers alone look like is said as such.
  std::string as_far_as_told() const {
    const Doubt& doubt = trends_.front()->doubt;
    return doubt ? ", as far as rows of " + doubt.text() + " can tell" : "";
  }

  std::string no_loss() const {
    if (trends_.front()->doubt) {
      const Range off = range_of(trends_, [](const SizeOfTrend& s) { return 1 - s.efficiency; });
      return fmt::format("the speed-ups lie within {:.1f} % of the ideal ones",
                         100 * std::max(std::abs(off.low), std::abs(off.high)));
    }
    const Range lost = range_of(trends_, [](const SizeOfTrend& s) {
      const double most = s.loss->high * (s.gpus - 1);  // N / S - 1
      return most / (1 + most);
    });
    return fmt::format(
        "no loss that can be told from noise; one of up to {:.1f} points of efficiency cannot be "
        "excluded",
        100 * std::max(0.0, lost.high));
  }

  std::string steady() const {
    const Range range = range_of(trends_, fraction_of);
    std::string text =
        is_strong()
            ? fmt::format("{} of the base's time is not divided among replicas, at any size",
                          percent(range))
            : fmt::format("each added replica adds {} of the base's time per step to it",
                          percent(range));
    if (!compares_rates(scaling_)) {
      text += fmt::format(" (Karp-Flatt fraction steady, {})", fractions_text(range));
    }
    return text + as_far_as_told();
  }

  std::string changes() const {
    const bool grows = trends_.front()->kind == TrendKind::grows;
    std::string text;
    if (is_strong()) {
      text = fmt::format(
          "the part of the base's time that is not divided {} from {} on {} to {} on {} replicas",
          grows ? "grows" : "falls", percent(range_at(trends_, false, fraction_of)), size(false),
          percent(range_at(trends_, true, fraction_of)), size(true));
    } else {
      text = fmt::format(
          "the time per step differs from the base's by {} on {} and by {} on {} replicas: {} than "
          "in proportion to the replicas added",
          percent(range_at(trends_, false, added_of)), size(false),
          percent(range_at(trends_, true, added_of)), size(true), grows ? "more" : "less");
    }
    if (!compares_rates(scaling_)) {
      text += fmt::format(" (Karp-Flatt {} to {})", at(false), at(true));
    }
    if (!grows) return text;
    return text + fmt::format(
                      "; look at communication, imbalance and shared memory{}, and whether "
                      "the base is slow",
                      is_strong() ? ", at small batches" : "");
  }

  std::string uneven() const {
    std::vector<std::string> sizes, values;
    for (std::size_t i = 0; i < trends_.front()->sizes.size(); ++i) {
      Range here;
      for (const Trend* trend : trends_) here.add(trend->sizes[i].fraction);
      sizes.push_back(std::to_string(trends_.front()->sizes[i].gpus));
      values.push_back(shown(here));
    }
    return fmt::format(
        "{} changes with the replicas, but not in one direction that can be told from noise: {} on "
        "{} replicas",
        what_, join(values, " / "), join(sizes, ", "));
  }

  std::string unclear() const {
    Range change;
    for (const Trend* trend : trends_) {
      change.add(trend->change->low);
      change.add(trend->change->high);
    }
    const int digits = fraction_digits(std::max(std::abs(change.low), std::abs(change.high)));
    const auto signed_text = [&](double value) {
      return compares_rates(scaling_) ? fmt::format("{:+.1f} %", 100 * value)
                                      : fmt::format("{:+.{}f}", value, digits);
    };
    return fmt::format(
        "whether {} changes with the replicas cannot be told from noise: {} on {}, {} on {}, a "
        "change of {} to {}",
        what_, at(false), size(false), at(true), size(true), signed_text(change.low),
        signed_text(change.high));
  }

  Scaling scaling_;
  std::string what_;
  Alike trends_;
};

FindingKind finding_kind(TrendKind kind) {
  switch (kind) {
    case TrendKind::slower_than_one:
      return FindingKind::slower_than_one;
    case TrendKind::no_loss:
      return FindingKind::no_loss;
    case TrendKind::above_ideal:
      return FindingKind::above_ideal;
    case TrendKind::one_size:
      return FindingKind::too_few_sizes;
    case TrendKind::steady:
      return FindingKind::steady;
    case TrendKind::grows:
      return FindingKind::grows;
    case TrendKind::falls:
      return FindingKind::falls;
    case TrendKind::uneven:
      return FindingKind::uneven;
    case TrendKind::unclear:
      return FindingKind::unclear;
    case TrendKind::unjudged:
      return FindingKind::unjudged;
  }
  return FindingKind::unjudged;
}

std::string cpus_of_group(const Alike& trends) {
  std::vector<std::string> cpus;
  for (const Trend* trend : trends) {
    if (!trend->cpus.empty()) cpus.push_back(trend->cpus);
  }
  return cpus.empty() ? "" : " (" + join(cpus, "; ") + ")";
}

// What a run is compared by, as the table has it.
double shown_cost(const Run& run, bool rates) {
  return rates ? *run.samples_per_second : *run.fit_seconds;
}

constexpr double kWideSpread = 1.25;
constexpr std::size_t kMostTimes = 6;

// A study that varies settings and no sizes asks for the fastest, on each machine by itself.
std::vector<Finding> settings_finding(const Study& study) {
  const bool comparable = study.scaling == Scaling::one_size && !study.axes.empty() &&
                          std::all_of(study.rows.begin(), study.rows.end(), [](const Row& row) {
                            return row.first().kind == "measured" && reached_goal(row);
                          });
  if (!comparable) return {};
  std::vector<Finding> found;
  for (const std::string& sentence : fastest_sentences(study)) {
    found.push_back({FindingKind::settings, sentence});
  }
  return found;
}

// A table of times shows neither rates nor efficiency, and a single run no spread.
std::string left_out_line(const std::vector<RowFacts>& facts) {
  Range rates, efficiencies;
  bool single = true;
  for (const RowFacts& row : facts) {
    if (row.run().kind != "published" || !row.fit_seconds) return "";
    single = single && row.row->runs.size() == 1;
    if (row.samples_per_second && !row.run().rate_is_given) {
      rates.add(row.samples_per_second->value);
    }
    if (row.speed_up && row.speed_up->efficiency && row.run().gpus > 1) {
      efficiencies.add(*row.speed_up->efficiency);
    }
  }
  std::vector<std::string> parts;
  if (rates.low <= rates.high) {
    parts.push_back(fmt::format("the rate ({} samples/s)", range_text(rates, 0)));
  }
  if (efficiencies.low <= efficiencies.high) {
    parts.push_back(fmt::format("efficiency ({} %)", range_text(efficiencies, 0, 100)));
    parts.push_back("the Karp-Flatt fraction");
  }
  if (single) parts.push_back("any spread (one run a row)");
  return parts.empty() ? "" : "the published table leaves out " + join(parts, ", ");
}

}  // namespace

std::vector<Finding> unlike_runs(const Study& study, const Comparison& comparison,
                                 const std::vector<RowFacts>& facts) {
  double widest = kWideSpread;
  std::size_t rows = 0, worst = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Row& row = *facts[i].row;
    if (row.tainted || row.runs.size() < 2) continue;
    Range shown;
    for (const Run& run : row.runs) shown.add(shown_cost(run, comparison.rates));
    const double spread = shown.high / shown.low;
    if (spread <= kWideSpread) continue;
    ++rows;
    if (spread > widest) worst = i;
    widest = std::max(widest, spread);
  }
  if (rows == 0) return {};
  std::vector<double> values;
  for (const Run& run : facts[worst].row->runs) {
    values.push_back(shown_cost(run, comparison.rates));
  }
  std::sort(values.begin(), values.end());
  std::string times;
  if (values.size() > kMostTimes) {
    times = fmt::format("{:.3g} to {:.3g}", values.front(), values.back());
  } else {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(fmt::format("{:.3g}", value));
    times = join(texts, ", ");
  }
  std::vector<const Row*> all;
  for (const RowFacts& each : facts) all.push_back(each.row);
  const std::string name = point_names(study, all)[worst];
  const std::string which = rows == 1 ? name : fmt::format("{} rows", rows);
  return {{FindingKind::runs_differ,
           fmt::format("runs of {} differ widely{} ({} {}): was the machine busy?", which,
                       rows == 1 ? "" : ", most of " + name, times,
                       comparison.rates ? "samples/s" : "s")}};
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
    const auto fraction = [](const RowFacts& row) { return row.speed_up->karp_flatt.value_or(0); };
    if (group->rows.front()->speed_up->karp_flatt) {
      fractions.push_back(fractions_text(range_over(*group, fraction)));
    }
  }
  std::string line = series.name.empty() ? "" : series.name + ": ";
  if (comparison.base == Base::best) line += "best against best: ";
  line += fmt::format("speed-up {} for {} replicas{}, efficiency {} %", join(speed_ups, " / "),
                      join(sizes, ", "), cpus_text(groups), join(efficiencies, " / "));
  if (!fractions.empty()) line += ", Karp-Flatt " + join(fractions, " / ");
  return {FindingKind::speed_ups, line};
}

std::vector<Finding> trend_findings(const Study& study, const ScalingSeries& series,
                                    const std::vector<Trend>& trends) {
  const std::vector<Alike> groups = grouped_by_kind(trends);
  std::vector<Finding> found;
  for (const Alike& group : groups) {
    const std::string text = TrendSentence(study, group).text();
    if (text.empty()) continue;
    std::string name = series.name + (groups.size() > 1 ? cpus_of_group(group) : "");
    if (!name.empty()) name += ": ";
    found.push_back({finding_kind(group.front()->kind), name + text});
  }
  return found;
}

std::vector<Finding> causes_finding(const Study& study, const Comparison& comparison,
                                    const std::vector<Finding>& found) {
  if (std::none_of(found.begin(), found.end(),
                   [](const Finding& each) { return each.kind == FindingKind::steady; })) {
    return {};
  }
  const bool strong = study.scaling == Scaling::strong, times = !comparison.rates;
  std::string causes =
      "work that is done for one sample after another (input), and communication that grows with "
      "every replica";
  if (strong) {
    causes =
        "in strong scaling serial work and an all-reduce whose cost levels off, as a ring's does, "
        "both look like that";
  } else if (times) {
    causes = "as the number of steps falls with the replicas, a fixed time per run, " + causes +
             " all look like that";
  } else {
    causes += " both look like that";
  }
  // Where such runs are in the table, their own sentence says what becomes of their loss.
  const bool of_fixed_steps = !strong && times;
  std::vector<std::string> advice;
  const bool has_null = std::any_of(study.rows.begin(), study.rows.end(), [](const Row& row) {
    return row.first().gpus > 1 && is_without_communication(row.first());
  });
  if (!has_null) {
    advice.emplace_back("runs with backend null tell communication from the rest");
  }
  if (of_fixed_steps) {
    advice.emplace_back(
        "runs of one number of steps at every size tell a fixed time per run from the rest");
  }
  return {{FindingKind::causes_alike, causes + ", and these numbers cannot tell them apart" +
                                          (advice.empty() ? "" : "; " + join(advice, ", "))}};
}

std::vector<Finding> findings(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts) {
  std::vector<Finding> found = unlike_runs(study, comparison, facts);
  for (const ScalingSeries& series :
       make_scaling_series(study, comparison, facts, false, Quality::held)) {
    found.push_back(series_finding(series, comparison));
    for (Finding& each : trend_findings(study, series, trends_of(study, comparison, series))) {
      found.push_back(std::move(each));
    }
  }
  for (Finding& each : causes_finding(study, comparison, found)) found.push_back(std::move(each));
  for (Finding& each : settings_finding(study)) found.push_back(std::move(each));
  if (const std::string line = lower_quality_line(study, facts); !line.empty()) {
    found.push_back({FindingKind::lower_quality, line});
  }
  if (const std::string line = left_out_line(facts); !line.empty()) {
    found.push_back({FindingKind::left_out, line});
  }
  if (const std::string line = implied_samples_line(study); !line.empty()) {
    found.push_back({FindingKind::implied_samples, line});
  }
  for (const ControlCheck& control : controls_of(study, comparison)) {
    found.push_back({FindingKind::control, control_line(control)});
  }
  return found;
}

}  // namespace paceline
