#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/study/cost.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kUnlikeShare = 0.1;
constexpr char kUnlikeCovers[] = "unlike";

Row with_energy(const Row& row) {
  Row known = row;
  std::erase_if(known.runs, [](const Run& run) { return !joules_per_sample(run); });
  return known;
}

bool is_shared(const Row& row) {
  return std::ranges::any_of(row.runs,
                             [](const Run& run) { return run->energy.shared.value_or(false); });
}

// Adds what two meters of the same thing say, where they differ much.
void note_unlike(const Run& run, std::map<std::string, std::vector<double>>& found) {
  const auto& meters = run->energy.meters;
  for (std::size_t i = 0; i < meters.size(); ++i) {
    for (std::size_t k = i + 1; k < meters.size(); ++k) {
      const MeterFacts *low = &meters[i], *high = &meters[k];
      if (low->covers != high->covers || !low->joules || !high->joules) continue;
      if (*low->joules > *high->joules) std::swap(low, high);
      const double more = *high->joules / *low->joules - 1;
      if (more <= kUnlikeShare) continue;
      found[fmt::format("{}: {} counts {{:.0f}} % more than {}", low->covers, high->meter,
                        low->meter)]
          .push_back(more);
    }
  }
}

}  // namespace

std::optional<double> energy_joules(const Run& run) {
  return run->energy.joules;
}

std::optional<double> joules_per_sample(const Run& run) {
  const auto joules = energy_joules(run);
  return joules && run.samples() && *run.samples() > 0 ? std::optional(*joules / *run.samples())
                                                       : std::nullopt;
}

std::optional<double> energy_seconds(const Run& run) {
  const auto& seconds = run->energy.seconds;
  return seconds && *seconds > 0 ? seconds : std::nullopt;
}

std::optional<double> idle_watts(const Run& run) {
  return run->energy.idle_watts;
}

std::optional<double> joules_beside_training(const Run& run) {
  const EnergyFacts& energy = run->energy;
  if (!energy.joules || !energy.evaluation_joules || !energy.checkpoint_joules) return std::nullopt;
  return *energy.evaluation_joules + *energy.checkpoint_joules;
}

std::optional<double> energy_delay(const Run& run) {
  const auto joules = energy_joules(run);
  return joules && run.fit_seconds() ? std::optional(*joules * *run.fit_seconds()) : std::nullopt;
}

std::string energy_covers(const Row& row) {
  std::set<std::string> all;
  for (const Run& run : row.runs) {
    if (energy_joules(run)) all.insert(run->energy.covers);
  }
  if (all.empty()) return "";
  if (all.size() > 1) return kUnlikeCovers;
  return *all.begin() + (is_shared(row) ? ", shared with other jobs" : "");
}

std::optional<Ratio> energy_efficiency(const Row& base, const Row& row) {
  const std::string covers = energy_covers(row);
  if (covers.empty() || covers == kUnlikeCovers || covers != energy_covers(base)) {
    return std::nullopt;
  }
  if (is_shared(row) || is_shared(base)) return std::nullopt;
  const Row known_base = with_energy(base), known_row = with_energy(row);
  if (known_base.runs.empty() || known_row.runs.empty()) return std::nullopt;
  return compare_sums(known_row, known_base, energy_joules, &Run::samples);
}

std::string missing_energy(const Study& study) {
  std::map<std::string, std::size_t> whys;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      if (energy_joules(run)) continue;
      const EnergyFacts& energy = run->energy;
      ++whys[energy.trouble.empty() ? "no meter (paceline doctor says which there are)"
                                    : energy.trouble];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [why, runs] : whys) parts.push_back(counted(runs, "run") + ": " + why);
  return parts.empty() ? "" : "without an energy: " + join(parts, "; ");
}

std::string unlike_meters(const Study& study) {
  std::map<std::string, std::vector<double>> found;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) note_unlike(run, found);
  }
  std::vector<std::string> parts;
  for (auto& [text, shares] : found) {
    std::nth_element(shares.begin(), shares.begin() + std::ssize(shares) / 2, shares.end());
    const double median = shares[shares.size() / 2];
    parts.push_back(fmt::format(fmt::runtime(text), 100 * median) +
                    fmt::format(" ({})", counted(shares.size(), "run")));
  }
  return parts.empty() ? "" : "meters that differ: " + join(parts, "; ");
}

}  // namespace paceline
