#include "analysis/study/point_names.h"

#include <fmt/format.h>

#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kReplicas = 3;  // the part that is always told

std::string cpus_named(const Run& run) {
  if (run.replicas_are_cores && run.cpus_per_replica()) {
    return fmt::format("{:g} CPU{} each", *run.cpus_per_replica(),
                       *run.cpus_per_replica() == 1 ? "" : "s");
  }
  return run.cpus_per_task ? fmt::format("cpus-per-task {}", *run.cpus_per_task) : "";
}

std::vector<std::string> name_parts(const Study& study, const Row& row) {
  const Run& run = row.first();
  std::vector<std::string> parts = {run.kind == "measured" ? "" : run.kind, run.system, run.backend,
                                    counted_replicas(study, run.gpus), cpus_named(run)};
  for (const std::string& axis : study.axes) {
    parts.push_back(fmt::format("{} {}", axis, run.parameters.text(axis).value_or("-")));
  }
  return parts;
}

}  // namespace

std::string counted_replicas(const Study& study, int gpus) {
  return fmt::format("{} {}{}", gpus, study.replicas_are_cores ? "replica" : "GPU",
                     gpus == 1 ? "" : "s");
}

std::vector<std::string> point_names(const Study& study, const std::vector<const Row*>& rows) {
  std::vector<std::vector<std::string>> parts;
  for (const Row* row : rows) parts.push_back(name_parts(study, *row));
  std::vector<std::string> names(rows.size());
  if (rows.empty()) return names;
  for (std::size_t k = 0; k < parts.front().size(); ++k) {
    std::set<std::string> seen;
    for (const auto& row : parts) seen.insert(row[k]);
    if (seen.size() < 2 && k != kReplicas && rows.size() > 1) continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (parts[i][k].empty()) continue;
      names[i] += (names[i].empty() ? "" : ", ") + parts[i][k];
    }
  }
  return names;
}

}  // namespace paceline
