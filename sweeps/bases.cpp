#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "results/names.h"
#include "results/parameters.h"
#include "sweeps/expansion.h"

namespace paceline {

namespace {

// What may differ between a point and its base: the layout, and work that depends on the replicas.
bool depends_on_size(std::string_view name) {
  return has_role(name, Role::layout) || has_role(name, Role::work) ||
         find_parameter(name)->follows_size;
}

// The parameters by which two points are comparable, as one text.
std::string sibling_key(const PlannedPoint& planned) {
  std::string kin;
  for (const auto& [name, value] : planned.parameters.values()) {
    if (!depends_on_size(name) && find_parameter(name)->identity())
      kin += name + "=" + to_text(value) + "\n";
  }
  return kin;
}

std::string with_backend(const PlannedPoint& planned, const std::string& backend) {
  return sibling_key(planned) + "backend=" + backend + "\n";
}

// A replica on cores is given CPUs of its own; on GPUs its task's are what tables show.
int count_cpus(const Layout& layout) {
  return layout.replicas_are_cores ? layout.cpus_per_replica : layout.cpus_per_task;
}

std::string on_cpus(const std::string& kin, int cpus) {
  return fmt::format("{}cpus={}", kin, cpus);
}

bool counts(const PlannedPoint& planned) {
  return (planned.cannot_run.empty() || planned.not_built) && !planned.parameters.find(kControl);
}

}  // namespace

std::vector<std::string> missing_bases(const std::vector<PlannedPoint>& points) {
  const bool one_size = std::all_of(points.begin(), points.end(), [&](const PlannedPoint& planned) {
    return planned.layout.gpus == points.front().layout.gpus;
  });
  if (one_size) return {};            // a study of settings
  std::set<std::string> singles, on;  // without and with their CPUs
  for (const PlannedPoint& planned : points) {
    if (!counts(planned) || planned.layout.gpus != 1) continue;
    const std::string kin =
        with_backend(planned, planned.parameters.text("backend").value_or(lone_backend()));
    singles.insert(kin);
    on.insert(on_cpus(kin, count_cpus(planned.layout)));
  }
  struct Missing {
    std::size_t count = 0;
    std::string first;
  } no_single, no_cpus;
  for (const PlannedPoint& planned : points) {
    if (!counts(planned) || planned.layout.gpus == 1) continue;
    bool has_single = false, has_base = false;
    for (const std::string& backend :
         {planned.parameters.text("backend").value_or(lone_backend()), lone_backend()}) {
      const std::string kin = with_backend(planned, backend);
      has_single = has_single || singles.contains(kin);
      has_base = has_base || on.contains(on_cpus(kin, count_cpus(planned.layout)));
    }
    if (has_base) continue;
    Missing& missing = has_single ? no_cpus : no_single;
    if (missing.count++ == 0) missing.first = planned.point.text();
  }
  std::vector<std::string> lines;
  const auto add = [&](const Missing& missing, const char* what, const char* fix) {
    if (missing.count == 0) return;
    lines.push_back(fmt::format(
        "no speed-up for {}{}: no point of one replica{}; {}", missing.first,
        missing.count == 1 ? "" : fmt::format(" and {} more", missing.count - 1), what, fix));
  };
  add(no_single, " is like it",
      "add gpus 1 with the same backend and settings, or report with --base smallest");
  add(no_cpus, " has as many CPUs",
      "leave the CPUs out of the spec, or hold cpus_per_replica fixed (on GPUs: cpus_per_task)");
  return lines;
}

}  // namespace paceline
