// Resolves a run: its parameters with defaults filled in, and its identity.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/core/error.h"
#include "results/parameters.h"

namespace paceline {

struct Workload;

constexpr char kFindDataFix[] = "give its folder by --data";

struct ResolvedRun {
  Point parameters;
  std::string identity;   // of workload and parameters
  std::string data_hash;  // of the data set's files
  std::string build;      // version, commit, dirty flag
};

// For one workload, whose data set is hashed once. Throws usage or input as `paceline train` would.
class RunResolver {
 public:
  // With `data_is_absent`, a missing data set is reported to it once instead of thrown, and parts
  // that are not built are accepted. For planning on a machine that will not run the study.
  // `data_fix`: the cure of such a data set.
  explicit RunResolver(std::string workload, std::function<void(const Error&)> data_is_absent = {},
                       std::string data_fix = kFindDataFix);
  ResolvedRun resolve(const Point& given);

 private:
  const std::string& hash_of_data(const Workload& workload);

  std::string workload_, data_fix_, data_hash_;
  std::shared_ptr<const Workload> made_;  // created once, with its network
  std::function<void(const Error&)> data_is_absent_;
};

// The GPU models that a device finds, as in records. Empty: none or unknown.
std::string gpus_of_this_machine(const std::string& device);

// For one replica on cores, from its plan. 0 if this build lacks the engine.
double planned_replica_bytes(const std::string& workload, const Point& parameters);

}  // namespace paceline
