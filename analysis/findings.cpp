#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/control.h"
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

template <typename Value>
Range range_over(const Rung& rung, Value value) {
  Range range;
  for (const RowFacts* row : rung.rows) range.add(value(*row));
  return range;
}

// "for 2, 3, 4 replicas": one replica is left out.
std::vector<const Rung*> several(const Ladder& ladder) {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : ladder.rungs) {
    if (rung.gpus > 1) rungs.push_back(&rung);
  }
  return rungs;
}

std::string cpus_text(const std::vector<const Rung*>& rungs) {
  Range cpus;
  for (const Rung* rung : rungs) {
    for (const RowFacts* row : rung->rows) {
      const Run& run = row->run();
      const auto count = run.replicas_are_cores ? run.cpus_per_replica()
                                                : std::optional<double>(run.cpus_per_task);
      if (count) cpus.add(*count);
    }
  }
  if (!(cpus.width() > 0)) return "";
  return fmt::format(
      " over {} {}",
      rungs.front()->rows.front()->run().replicas_are_cores ? "CPUs per replica" : "cpus-per-task",
      range_text(cpus, 0));
}

// The Karp-Flatt fraction of a rung, and where its interval lies if every row has one.
struct Fraction {
  double value = 0;
  std::optional<Interval> interval;
};

Fraction fraction_of(const Rung& rung) {
  Fraction result;
  Range range;
  bool all = true;
  for (const RowFacts* row : rung.rows) {
    result.value += *row->speed_up->karp_flatt / static_cast<double>(rung.rows.size());
    const auto& interval = row->speed_up->ratio.estimate.interval;
    all = all && interval;
    if (!interval) continue;
    range.add(karp_flatt(interval->high, rung.gpus));
    range.add(karp_flatt(interval->low, rung.gpus));
  }
  if (all) result.interval = Interval{range.low, range.high};
  return result;
}

double cpus_of(const RowFacts& row) {
  const Run& run = row.run();
  return run.replicas_are_cores ? run.cpus_per_replica().value_or(0)
                                : run.cpus_per_task.value_or(0);
}

// Rungs of one row each, or of the CPUs that all of them have: others would show a trend of CPUs.
std::vector<Rung> comparable(const std::vector<const Rung*>& rungs) {
  std::vector<Rung> result;
  for (const Rung* rung : rungs) result.push_back(*rung);
  if (std::all_of(result.begin(), result.end(),
                  [](const Rung& rung) { return rung.rows.size() == 1; })) {
    return result;
  }
  const std::vector<Rung> all = result;
  for (Rung& rung : result) {
    std::erase_if(rung.rows, [&](const RowFacts* row) {
      return !std::all_of(all.begin(), all.end(), [&](const Rung& other) {
        return std::any_of(other.rows.begin(), other.rows.end(),
                           [&](const RowFacts* like) { return cpus_of(*like) == cpus_of(*row); });
      });
    });
  }
  std::erase_if(result, [](const Rung& rung) { return rung.rows.empty(); });
  return result;
}

// A page of times shows neither rates nor efficiency, and a single run no spread.
std::string left_out_line(const std::vector<RowFacts>& facts) {
  Range rates, efficiencies;
  for (const RowFacts& row : facts) {
    if (row.run().kind != "published" || !row.fit_seconds) return "";
    if (row.samples_per_second) rates.add(row.samples_per_second->value);
    if (row.speed_up && row.run().gpus > 1) efficiencies.add(row.speed_up->efficiency);
  }
  std::vector<std::string> parts;
  if (rates.low <= rates.high) {
    parts.push_back(fmt::format("the rate ({} samples/s)", range_text(rates, 0)));
  }
  if (efficiencies.low <= efficiencies.high) {
    parts.push_back(fmt::format("efficiency ({} %)", range_text(efficiencies, 0, 100)));
    parts.push_back("the Karp-Flatt fraction");
  }
  parts.push_back("any spread (one run a row)");
  return "the page leaves out " + join(parts, ", ");
}

}  // namespace

std::string ladder_line(const Ladder& ladder, const Comparison& comparison) {
  std::vector<std::string> sizes, speed_ups, efficiencies, fractions;
  const auto rungs = several(ladder);
  for (const Rung* rung : rungs) {
    sizes.push_back(std::to_string(rung->gpus));
    const auto value = [](const RowFacts& row) { return row.speed_up->ratio.estimate.value; };
    speed_ups.push_back(range_text(range_over(*rung, value), 2));
    const auto efficiency = [](const RowFacts& row) { return row.speed_up->efficiency; };
    efficiencies.push_back(range_text(range_over(*rung, efficiency), 0, 100));
    const auto fraction = [](const RowFacts& row) { return row.speed_up->karp_flatt.value_or(0); };
    if (rung->rows.front()->speed_up->karp_flatt) {
      fractions.push_back(range_text(range_over(*rung, fraction), 3));
    }
  }
  std::string line = ladder.name.empty() ? "" : ladder.name + ": ";
  if (comparison.base == Base::best) line += "best against best: ";
  line += fmt::format("speed-up {} for {} replicas{}, efficiency {} %", join(speed_ups, " / "),
                      join(sizes, ", "), cpus_text(rungs), join(efficiencies, " / "));
  if (!fractions.empty()) line += ", Karp-Flatt " + join(fractions, " / ");
  return line;
}

std::string trend_line(const Ladder& ladder) {
  std::vector<Fraction> fractions;
  int largest = 1;
  for (const Rung& rung : comparable(several(ladder))) {
    if (!rung.rows.front()->speed_up->karp_flatt) continue;
    fractions.push_back(fraction_of(rung));
    largest = std::max(largest, rung.gpus);
  }
  if (fractions.size() < 2) return "";
  Range range;
  double mean = 0;
  for (const Fraction& fraction : fractions) {
    range.add(fraction.value);
    mean += fraction.value / static_cast<double>(fractions.size());
  }
  const Fraction& first = fractions.front();
  const Fraction& last = fractions.back();
  const std::string name = ladder.name.empty() ? "" : ladder.name + ": ";
  // What a fraction costs grows with the replicas: 0.1 / p of p replicas is a tenth of one
  // replica's time on each.
  const double small = std::max(std::min(0.02, 0.1 / largest), 0.2 * std::abs(mean));
  const bool roughly_constant = range.width() <= small;
  constexpr double kNothing = 0.05;
  if (roughly_constant && std::abs(mean) * (largest - 1) < kNothing) {
    return name + "the Karp-Flatt fraction is about zero: no serial share to speak of";
  }
  if (roughly_constant && mean < 0) {
    return name +
           "the Karp-Flatt fraction is below zero throughout: replicas do more than their "
           "share (is the base weak?)";
  }
  if (roughly_constant) {
    return fmt::format(
        "{}the Karp-Flatt fraction is roughly constant, ~{:.{}f}: a fixed serial share of about "
        "{:.{}f} %, not communication that grows with the replicas",
        name, mean, mean < 0.1 ? 3 : 2, mean * 100, mean < 0.02 ? 1 : 0);
  }
  if (first.interval && last.interval && first.interval->low <= last.interval->high &&
      last.interval->low <= first.interval->high) {
    return name + "the Karp-Flatt fraction shows no trend beyond the noise of the runs";
  }
  if (std::abs(last.value - first.value) <= small) {
    return fmt::format("{}the Karp-Flatt fraction lies between {:.3f} and {:.3f}, without a trend",
                       name, range.low, range.high);
  }
  return fmt::format("{}the Karp-Flatt fraction goes from {:.3f} to {:.3f}: {}", name, first.value,
                     last.value,
                     last.value > first.value
                         ? "the overhead grows with the replicas (communication, imbalance or "
                           "shared memory)"
                         : "the overhead falls as replicas are added (is the base weak?)");
}

std::vector<std::string> findings(const Study& study, const Comparison& comparison,
                                  const std::vector<RowFacts>& facts) {
  std::vector<std::string> lines;
  for (const Ladder& ladder : make_ladders(study, comparison, facts, false)) {
    lines.push_back(ladder_line(ladder, comparison));
    if (const std::string trend = trend_line(ladder); !trend.empty()) lines.push_back(trend);
  }
  if (const std::string line = left_out_line(facts); !line.empty()) lines.push_back(line);
  for (const ControlCheck& control : controls_of(study, comparison)) {
    lines.push_back(control_line(control));
  }
  return lines;
}

}  // namespace paceline
