#include "sweeps/unfinished.h"

#include <nlohmann/json.hpp>

#include "results/store.h"

namespace paceline {

std::filesystem::path write_unfinished(const std::filesystem::path& study,
                                       const UnfinishedRun& run) {
  RunRecord record;
  record.study = run.study;
  record.point = run.point;
  record.session = run.session;
  record.round = run.repeat;
  record.status = run.status;
  record.reason = run.reason;
  record.workload = run.workload;
  record.parameters = run.parameters;
  record.layout = layout_facts(make_layout(run.parameters));
  return Store(study).write(run.point_folder, run.repeat, to_json(record), "");
}

}  // namespace paceline
