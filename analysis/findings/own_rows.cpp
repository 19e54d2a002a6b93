// Rows that lost runs, and what rows say that contradicts itself.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "analysis/study/cost.h"
#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

constexpr std::size_t kMostListed = 4;

constexpr std::size_t kFewestRows = 3, kMostNamed = 3;
constexpr double kDeviation = 0.1;

std::string samples_text(double samples) {
  return samples >= 1e6 ? fmt::format("{:.3g} million", samples / 1e6)
                        : fmt::format("{:.0f}", samples);
}

constexpr double kLargestRateFactor = 1.5;

// What the program states as its rate over what follows from its samples and its time.
std::optional<double> rate_factor(const Run& run) {
  const Throughput& stated = *run->throughput;
  if (!run->provenance.program && !run.made_elsewhere()) return std::nullopt;
  if (!stated.samples_per_second || !stated.samples || !run.fit_seconds()) return std::nullopt;
  const double factor = *stated.samples_per_second * *run.fit_seconds() / *stated.samples;
  const bool agrees = factor < kLargestRateFactor && factor > 1 / kLargestRateFactor;
  return agrees ? std::nullopt : std::optional(factor);
}

// ", as many as its replicas", ", 1 over its replicas"; empty: it is none of the run's numbers.
std::string explain_factor(const Run& run, double factor) {
  const double times = std::max(factor, 1 / factor);
  const auto is_it = [times](double number) { return std::abs(times / number - 1) <= kDeviation; };
  const std::string relation = factor > 1 ? ", as many as its " : ", 1 over its ";
  if (run->layout.gpus > 1 && is_it(run->layout.gpus)) return relation + "replicas";
  const char* steps = "gradient_accumulation_steps";
  const auto accumulated = run->parameters.real(steps);
  return accumulated && *accumulated > 1 && is_it(*accumulated)
             ? relation + option_name(steps).substr(2)
             : "";
}

constexpr double kMuchNarrower = 0.5;
constexpr std::size_t kMostTrimmed = 4;

bool is_spread_out(const RowValues& costs, double spread) {
  const auto [least, most] = std::ranges::minmax(
      costs.values, {}, [](const std::vector<double>& unit) { return unit.front(); });
  return most.front() - least.front() > std::log(spread);
}

double log_width(const Interval& interval) {
  return std::log(interval.high / interval.low);
}

std::optional<Estimate> trimmed_speed_up(const Row& base, const RowFacts& facts, bool rates,
                                         double spread) {
  const RowValues before = log_costs(base, rates), after = log_costs(*facts.row, rates);
  if (!is_spread_out(before, spread) && !is_spread_out(after, spread)) return std::nullopt;
  const Estimate trimmed = as_factor(trimmed_contrast(after, before));
  const auto& known = facts.speed_up->ratio.estimate.interval;
  const bool is_narrower = known && trimmed.interval &&
                           log_width(*trimmed.interval) <= kMuchNarrower * log_width(*known);
  return is_narrower ? std::optional(trimmed) : std::nullopt;
}

// Of the runs of which no machine was busy. Empty: there are none, or the others do not differ.
std::optional<Estimate> quiet_speed_up(const Row& base, const Row& row, bool rates, double spread) {
  if (!is_spread_out(log_costs(base, rates), spread) &&
      !is_spread_out(log_costs(row, rates), spread)) {
    return std::nullopt;
  }
  Row quiet_base = base, quiet_row = row;
  for (Row* each : {&quiet_base, &quiet_row}) std::erase_if(each->runs, &Run::is_busy);
  if (quiet_base.runs.empty() || quiet_row.runs.empty()) return std::nullopt;
  return compute_ratio(quiet_base, quiet_row, rates).estimate;
}

}  // namespace

std::vector<Finding> survivor_findings(const Study& study, const std::vector<std::string>& names) {
  std::vector<Finding> found;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Row& row = study.rows[i];
    if (row.lost == 0) continue;
    found.push_back(
        {FindingKind::survivors,
         fmt::format("{}: {}{}; its numbers are of these only", names[i], survivors_text(row),
                     row.why_lost.empty() ? "" : " (" + row.why_lost + ")")});
  }
  if (found.size() <= kMostListed) return found;
  return {{FindingKind::survivors,
           fmt::format("{} rows lost runs (column label): their numbers are of the completed ones",
                       found.size())}};
}

std::string implied_samples_line(const Study& study) {
  std::vector<std::pair<const Row*, double>> implied;
  for (const Row& row : study.rows) {
    const Run& run = row.first();
    const bool has_both = run.fit_seconds() && run->throughput->samples_per_second;
    if (!run.made_elsewhere() || !has_both || find_unit(run).is_own()) continue;
    implied.emplace_back(&row, *run.fit_seconds() * *run.samples_per_second);
  }
  // What its steps and batch say of a row decides whether it agrees.
  std::erase_if(implied, [](const auto& each) {
    const auto total = each.first->first().samples_by_steps();
    return total && std::abs(each.second / *total - 1) <= kDeviation;
  });
  if (implied.size() < kFewestRows) return "";
  std::vector<double> sorted = mapped(implied, [](const auto& each) { return each.second; });
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  std::vector<std::string> named;
  std::vector<double> others;
  const std::vector<std::string> names = point_names(study);
  std::size_t deviating = 0;
  for (const auto& [row, samples] : implied) {
    if (std::abs(samples / median - 1) <= kDeviation) {
      others.push_back(samples);
    } else if (++deviating <= kMostNamed) {
      named.push_back(fmt::format("{} samples for {}", samples_text(samples),
                                  names[static_cast<std::size_t>(row - study.rows.data())]));
    }
  }
  if (deviating == 0) return "";
  const auto [low, high] = std::ranges::minmax_element(others);
  return fmt::format(
      "check the published numbers: time x rate gives {}{}, but {} to {} for the other {}",
      join(named, ", "), deviating > kMostNamed ? ", ..." : "", samples_text(*low),
      samples_text(*high), counted(others.size(), "row"));
}

std::string rate_off_time_line(const Study& study) {
  std::vector<std::string> named;
  std::size_t count = 0;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Run& run = study.rows[i].first();
    const auto factor = rate_factor(run);
    if (!factor || ++count > kMostNamed) continue;
    named.push_back(fmt::format("of {} is {:.2f} times its samples / fit seconds{}",
                                point_names(study)[i], *factor, explain_factor(run, *factor)));
  }
  if (count == 0) return "";
  return fmt::format(
      "check rate, samples and seconds: the rate {}{}. One of them may count one replica, "
      "accumulated batches or another unit, or much of the time is not training",
      join(named, ", "), count > kMostNamed ? ", ..." : "");
}

std::string above_peak_line(const Study& study) {
  std::vector<const Row*> above;
  Range shares;
  for (const Row& row : study.rows) {
    const auto share = ratio_of_sums(row, model_operations, peak_operations);
    if (!share || share->value <= 1) continue;
    above.push_back(&row);
    shares.add(share->value);
  }
  if (above.empty()) return "";
  const std::vector<std::string> names = point_names(study);
  std::vector<std::string> named;
  for (const Row* row : above)
    named.push_back(names[static_cast<std::size_t>(row - study.rows.data())]);
  return fmt::format(
      "check operations, rate and peak: the MFU of {} is {} %, and more than 100 % is impossible. "
      "6 operations a parameter also count embeddings and unused experts; a rate may count "
      "replicas or accumulated batches twice; a peak may be of another precision or GPU",
      join_first(kMostNamed, named, "; "), range_text(shares, 0, 100));
}

std::string time_above_program_line(const Study& study) {
  constexpr double kSlack = 0.1, kMostTimes = 1.02;
  const std::vector<std::string> names = point_names(study);
  std::vector<std::string> named;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    for (const Run& run : study.rows[i].runs) {
      const auto& program = run->provenance.program;
      const auto fit = run.fit_seconds();
      if (!program || !program->seconds || !fit ||
          *fit <= kMostTimes * *program->seconds + kSlack) {
        continue;
      }
      named.push_back(fmt::format("{}: {}, but the program ran {}", names[i], format_seconds(*fit),
                                  format_seconds(*program->seconds)));
      break;
    }
  }
  if (named.empty()) return "";
  return "fit seconds are more than the program took (" + join_first(kMostNamed, named, "; ") +
         "): set \"scale\" if they have another unit, or read the log of this run";
}

std::string far_cpus_line(const Study& study) {
  std::size_t runs = 0, far = 0;
  std::string example;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      const auto gpu = std::ranges::find_if(run->gpus, has_far_cpus);
      ++runs;
      if (gpu == run->gpus.end()) continue;
      if (far++ == 0) {
        example = fmt::format("GPU{}{} on NUMA node {}, its replica's CPUs on {}",
                              gpu->pci.empty() ? "" : " ", gpu->pci, *gpu->numa_node,
                              gpu->cpus_numa_nodes);
      }
    }
  }
  if (far == 0) return "";
  return fmt::format(
      "in {} of {} a replica's CPUs were on another NUMA node than its GPU ({}), which can slow "
      "input and copies: {}",
      far, counted(runs, "run"), example, kBindNearGpus);
}

std::vector<std::string> calmer_ratios_lines(const Study& study, const Comparison& comparison,
                                             const std::vector<RowFacts>& facts, double spread) {
  const std::vector<std::string> names = point_names(study, mapped(facts, &RowFacts::row));
  std::vector<std::string> trimmed, quiet;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].speed_up || facts[i].speed_up->base == i) continue;
    const Row& base = study.rows[facts[i].speed_up->base];
    const bool is_busy = busy_runs(base) + busy_runs(*facts[i].row) > 0;
    const auto ratio = is_busy ? quiet_speed_up(base, *facts[i].row, comparison.rates, spread)
                               : trimmed_speed_up(base, facts[i], comparison.rates, spread);
    if (!ratio) continue;
    (is_busy ? quiet : trimmed)
        .push_back(fmt::format(
            "{}: speed-up {:.2f} {}", names[i], ratio->value,
            ratio->interval
                ? fmt::format("[{:.2f}, {:.2f}]", ratio->interval->low, ratio->interval->high)
                : "(" + counted(ratio->count, "run") + ")"));
  }
  std::vector<std::string> lines;
  const auto add = [&lines](const char* what, const std::vector<std::string>& texts) {
    if (!texts.empty()) lines.push_back(what + join_first(kMostTrimmed, texts, "; "));
  };
  add("without runs on a busy machine: ", quiet);
  add("without the fastest and the slowest runs of each row (trimmed means): ", trimmed);
  return lines;
}

}  // namespace paceline
