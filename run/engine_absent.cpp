// What needs the engine, in a build without it.
#include "engine/core/error.h"
#include "run/diagnosis.h"
#include "run/plan_study.h"
#include "run/program_run.h"
#include "run/resolve.h"
#include "run/version.h"

namespace paceline {

std::vector<Service> services(const ProcessRank&, const std::string&) {
  return {};
}

std::string describe_cards(const std::string&) {
  return "";
}

std::vector<Fact> gpu_meters() {
  return {};
}

int count_gpus(const std::string&) {
  return 0;
}

std::string gpus_of_this_machine(const std::string&) {
  return "";
}

std::string reason_not_runnable(const PlannedPoint&) {
  return "";
}

std::vector<ScalarEvent> scalar_events(const std::filesystem::path& place, const std::string&) {
  throw usage_error("this build has no engine, so it reads no event files", place.string(),
                    "build with -DPACELINE_ENGINE=ON");
}

void check_data_is_read(const std::string&, const std::string&, const std::vector<PlannedPoint>&) {}

void check_data_root(const std::string&, const std::string&, const std::vector<PlannedPoint>&) {}

double planned_replica_bytes(const std::string&, const Point&) {
  return 0;
}

Resolved RunResolver::resolve(const Point& given) {
  return {given, identity_hash(workload_, given), "", build_id()};
}

}  // namespace paceline
