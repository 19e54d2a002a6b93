#include "analysis/explain/cpu_for_communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/study/contrast.h"
#include "analysis/study/point_names.h"
#include "analysis/study/row_facts.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kLeastShare = 0.1;  // of a step
const double kTwice = std::log(2.0);

// Of a rank and step.
std::optional<double> step_seconds_of_waiting(const Run& run) {
  if (run.phase_step <= 0 || run.phase_communication <= 0 || run.phase_ranks == 0)
    return std::nullopt;
  if (!run.steps || *run.steps <= 0) return std::nullopt;
  return run.phase_communication / run.phase_ranks / *run.steps;
}

std::optional<double> step_share_of_waiting(const Run& run) {
  if (run.phase_step <= 0) return std::nullopt;
  return run.phase_communication / run.phase_step;
}

// Whether every run of the row is of several replicas and knows the wait and the CPUs.
bool is_usable(const Row& row) {
  return !row.runs.empty() && std::all_of(row.runs.begin(), row.runs.end(), [](const Run& run) {
    return run.kind == "measured" && run.gpus > 1 && run.cpus_per_replica() &&
           step_seconds_of_waiting(run);
  });
}

// All that must be equal: everything but the CPUs.
std::string key_without_cpus(const Run& run) {
  std::string key =
      fmt::format("{} {} {} {}", run.system, run.backend, run.gpus, run.nodes.value_or(0));
  for (const auto& [name, value] : run.parameters.values()) {
    if (name.starts_with("cpus_per_") || name.ends_with("_threads")) continue;
    key += fmt::format(" {}={}", name, to_text(value));
  }
  return key;
}

std::string waiting_sentence(const Study& study, const Row& few, const Row& more) {
  const double before = *mean(few, step_seconds_of_waiting),
               after = *mean(more, step_seconds_of_waiting);
  const auto cpus = [](const Row& row) {
    return counted(static_cast<std::int64_t>(*row.first().cpus_per_replica()), "CPU");
  };
  return fmt::format(
      "{}, {}: a step waits {} for communication with {} a replica and {} with {}, as if "
      "communication shared a CPU with the computation",
      few.first().backend, counted_replicas(study, few.first().gpus), format_seconds(before),
      cpus(few), format_seconds(after), cpus(more));
}

}  // namespace

std::vector<std::string> cpu_for_communication(const Study& study) {
  std::map<std::string, std::vector<const Row*>> groups;
  for (const Row& row : study.rows) {
    if (is_usable(row)) groups[key_without_cpus(row.first())].push_back(&row);
  }
  const auto by_cpus = [](const Row* a, const Row* b) {
    return *a->first().cpus_per_replica() < *b->first().cpus_per_replica();
  };
  std::vector<std::string> sentences;
  for (auto& [key, rows] : groups) {
    std::stable_sort(rows.begin(), rows.end(), by_cpus);
    const Row& few = *rows.front();
    if (mean(few, step_share_of_waiting).value_or(0) < kLeastShare) continue;
    const Row* best = nullptr;
    for (const Row* more : rows) {
      if (!by_cpus(&few, more)) continue;
      const Difference grown = contrast(
          {log_values(*more, step_seconds_of_waiting), log_values(few, step_seconds_of_waiting)},
          [](const RowMeans& means) { return means[1][0] - means[0][0]; });
      if (!is_above(grown, kTwice)) continue;
      if (best == nullptr ||
          *mean(*more, step_seconds_of_waiting) < *mean(*best, step_seconds_of_waiting))
        best = more;
    }
    if (best != nullptr) sentences.push_back(waiting_sentence(study, few, *best));
  }
  return sentences;
}

}  // namespace paceline
