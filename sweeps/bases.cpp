#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/text.h"
#include "results/match.h"
#include "results/names.h"
#include "results/run_record.h"
#include "sweeps/expansion.h"

namespace paceline {

namespace {

PointKey base_key(const PlannedPoint& planned, const std::string& backend, const MatchRule& rule) {
  const LayoutFacts layout = layout_facts(planned.layout);
  return {{.parameters = planned.parameters, .layout = &layout, .backend = backend}, rule};
}

std::string own_backend(const PlannedPoint& planned) {
  return planned.parameters.text("backend").value_or(lone_backend());
}

bool counts(const PlannedPoint& planned) {
  return (planned.cannot_run.empty() || planned.not_built) && !planned.parameters.find(kControl);
}

}  // namespace

std::vector<std::string> missing_bases(const std::vector<PlannedPoint>& points) {
  const auto sizes = distinct(points, [](const PlannedPoint& each) { return each.layout.gpus; });
  if (sizes.size() < 2) return {};  // a study of settings
  const MatchRule with_cpus = MatchRule::planned_base();
  MatchRule without_cpus = with_cpus;
  without_cpus.cpus = MatchCpus::none;
  std::set<PointKey> singles, on;  // without and with their CPUs
  for (const PlannedPoint& planned : points) {
    if (!counts(planned) || planned.layout.gpus != 1) continue;
    singles.insert(base_key(planned, own_backend(planned), without_cpus));
    on.insert(base_key(planned, own_backend(planned), with_cpus));
  }
  struct Missing {
    std::size_t count = 0;
    std::string first;
  } no_single, no_cpus;
  for (const PlannedPoint& planned : points) {
    if (!counts(planned) || planned.layout.gpus == 1) continue;
    bool has_single = false, has_base = false;
    for (const std::string& backend : {own_backend(planned), lone_backend()}) {
      has_single = has_single || singles.contains(base_key(planned, backend, without_cpus));
      has_base = has_base || on.contains(base_key(planned, backend, with_cpus));
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
