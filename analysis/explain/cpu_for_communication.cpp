#include "analysis/explain/cpu_for_communication.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/study/contrast.h"
#include "analysis/study/point_names.h"
#include "analysis/study/row_facts.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kLeastShare = 0.1;  // of a step
const double kTwice = std::log(2.0);

// Of a rank and step.
std::optional<double> exposed_seconds(const Run& run) {
  if (run.phase_step <= 0 || run.phase_communication <= 0 || run.phase_ranks == 0)
    return std::nullopt;
  if (!run.steps || *run.steps <= 0) return std::nullopt;
  return run.phase_communication / run.phase_ranks / *run.steps;
}

std::optional<double> exposed_share(const Run& run) {
  if (run.phase_step <= 0) return std::nullopt;
  return run.phase_communication / run.phase_step;
}

bool all_have(const Row& row, const RunFact& fact) {
  for (const Run& run : row.runs) {
    if (!fact(run)) return false;
  }
  return !row.runs.empty();
}

// Everything but the CPUs is the same.
bool differ_in_cpus_only(const Run& few, const Run& more) {
  if (few.backend != more.backend || few.gpus != more.gpus || few.nodes != more.nodes) return false;
  if (few.kind != "measured" || more.kind != "measured" || few.system != more.system)
    return false;
  const auto cpus = few.cpus_per_replica(), more_cpus = more.cpus_per_replica();
  if (few.gpus < 2 || !cpus || !more_cpus || *cpus >= *more_cpus) return false;
  for (const auto& [name, value] : few.parameters.values()) {
    if (name.starts_with("cpus_per_") || name.ends_with("_threads")) continue;
    const auto other = more.parameters.text(name);
    if (!other || *other != to_text(value)) return false;
  }
  return true;
}

std::string sentence(const Study& study, const Row& few, const Row& more) {
  const double before = *mean(few, exposed_seconds), after = *mean(more, exposed_seconds);
  const auto cpus = [](const Row& row) {
    return counted(static_cast<std::int64_t>(*row.first().cpus_per_replica()), "CPU");
  };
  return fmt::format(
      "{}, {}: a step waits {} for communication with {} a replica and {} with {}: the "
      "communication "
      "lacks a CPU, as it does if the library's own thread shares the CPU that computes",
      few.first().backend, counted_replicas(study, few.first().gpus), format_seconds(before),
      cpus(few), format_seconds(after), cpus(more));
}

}  // namespace

std::vector<std::string> cpu_for_communication(const Study& study) {
  std::vector<std::string> sentences;
  for (const Row& few : study.rows) {
    if (!all_have(few, exposed_seconds)) continue;
    const Row* best = nullptr;
    for (const Row& more : study.rows) {
      if (!differ_in_cpus_only(few.first(), more.first()) || !all_have(more, exposed_seconds))
        continue;
      const Difference grown =
          contrast({log_values(more, exposed_seconds), log_values(few, exposed_seconds)},
                   [](const RowMeans& means) { return means[1][0] - means[0][0]; });
      if (!is_above(grown, kTwice)) continue;
      if (best == nullptr || *mean(more, exposed_seconds) < *mean(*best, exposed_seconds))
        best = &more;
    }
    if (best != nullptr && mean(few, exposed_share).value_or(0) >= kLeastShare) {
      sentences.push_back(sentence(study, few, *best));
    }
  }
  return sentences;
}

}  // namespace paceline
