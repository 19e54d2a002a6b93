// Whether a point of a study can run on this machine, asked before its first run.
#include <fmt/format.h>

#include <map>
#include <set>

#include "engine/comm/table.h"
#include "engine/core/backend_stack.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/gpus.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

std::string reason_without_cores(const Layout& layout, bool oversubscribe) {
  static const int cpus = static_cast<int>(usable_cpus().size());
  const int replicas = layout.gpus / layout.nodes;
  if (layout.cpus_per_replica > cpus) {
    return fmt::format("{} CPUs a replica, and {} may be used", layout.cpus_per_replica, cpus);
  }
  if (replicas * layout.cpus_per_replica <= cpus || oversubscribe) return "";
  return fmt::format(
      "{} replicas of {} CPU{} each on {} usable CPU{}; --set oversubscribe=true "
      "tries it, and no interval counts its times",
      replicas, layout.cpus_per_replica, layout.cpus_per_replica == 1 ? "" : "s", cpus,
      cpus == 1 ? "" : "s");
}

// Asking takes long, and a study may have 100,000 points.
std::string reason_without_gpus(const std::string& device, const std::string& backend,
                                int replicas) {
  struct Seen {
    std::size_t gpus = 0;
    std::string why;
  };
  static std::map<std::string, Seen> seen;
  auto found = seen.find(device);
  if (found == seen.end()) {
    Seen now;
    if (const auto driver = load_driver(device)) now.gpus = driver->visible(now.why).size();
    found = seen.emplace(device, now).first;
  }
  const Seen& here = found->second;
  if (here.gpus == 0) return fmt::format("device {} needs a GPU: {}", device, here.why);
  if (may_share_gpus(backend) || static_cast<std::size_t>(replicas) <= here.gpus) return "";
  return fmt::format("{} replicas on {} GPU{}", replicas, here.gpus, here.gpus == 1 ? "" : "s");
}

std::string reason_without_backend(const std::string& name) {
  static const std::set<std::string> need_gpus = [] {
    std::set<std::string> names;
    for (const auto& row : backend_table()) {
      if (row.make()->needs_gpus()) names.insert(row.name);
    }
    return names;
  }();
  if (!need_gpus.contains(name)) return "";
  return fmt::format("backend {} needs GPUs: --set device=cuda, or another backend", name);
}

}  // namespace

std::string reason_not_runnable(const PlannedPoint& planned) {
  const Point& p = planned.parameters;
  const Layout& layout = planned.layout;
  const std::string device = Settings(p).text("device");
  const std::string backend = p.text("backend").value_or(lone_backend());
  if (!layout.replicas_are_cores) {
    const std::string why = reason_without_gpus(device, backend, layout.gpus / layout.nodes);
    if (!why.empty()) return why;
  } else if (const std::string why = reason_without_backend(split_stack(backend).between);
             !why.empty()) {
    return why;
  }
  static const bool launched = find_process_rank(environment_of_process()).launched;
  if (layout.nodes > 1 && !launched) {
    return fmt::format("{} nodes, and a sweep runs on one: paceline submit", layout.nodes);
  }
  return reason_without_cores(layout, Settings(p).flag("oversubscribe"));
}

}  // namespace paceline
