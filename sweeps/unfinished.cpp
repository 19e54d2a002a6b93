#include "sweeps/unfinished.h"

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "results/layout.h"
#include "results/store.h"

namespace paceline {

namespace {

Json layout_json(const Layout& layout) {
  return {{"nodes", layout.nodes},
          {"ntasks", layout.ntasks},
          {"cpus_per_task", layout.cpus_per_task},
          {"gpus", layout.gpus},
          {"cpus_per_replica", layout.cpus_per_replica},
          {"replicas_are", layout.replicas_are_cores ? "cores" : "gpus"}};
}

}  // namespace

std::filesystem::path write_unfinished(const std::filesystem::path& study,
                                       const UnfinishedRun& run) {
  Json parameters = {{"workload", run.workload}};
  for (const auto& [name, value] : run.parameters.values()) {
    parameters[name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  const Json record = {{"schema", kRecordSchema},
                       {"kind", "measured"},
                       {"study", run.study},
                       {"point", run.point},
                       {"repeat", run.repeat},
                       {"attempt", 1},
                       {"session", run.session},
                       {"round", run.repeat},
                       {"status", run.status},
                       {"reason", run.reason},
                       {"parameters", parameters},
                       {"identity", ""},
                       {"layout", layout_json(layout_of(run.parameters))}};
  return Store(study).write(run.point_folder, run.repeat, record, "");
}

}  // namespace paceline
