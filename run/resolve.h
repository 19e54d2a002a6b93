// What a run would be: its parameters with the defaults filled in, and what tells it from others.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/core/error.h"
#include "results/parameters.h"

namespace paceline {

struct Workload;

struct ResolvedRun {
  Point parameters;
  std::string identity;   // of workload and parameters
  std::string data_hash;  // of the data set's files
  std::string build;      // version, commit, dirty flag
};

// Of one workload; its data set is hashed once. Throws usage or input as `paceline train` would.
class RunResolver {
 public:
  // `data_is_absent`, where there is one, is told of a data set that is not here, once, instead of
  // an error, and what is not built here is none either: for a look at a study on a machine that is
  // not to run it.
  explicit RunResolver(std::string workload, std::function<void(const Error&)> data_is_absent = {});
  ResolvedRun resolve(const Point& given);

 private:
  const std::string& hash_of_data(const Workload& workload);

  std::string workload_, data_hash_;
  std::shared_ptr<const Workload> made_;  // once, with its network
  std::function<void(const Error&)> data_is_absent_;
};

// The kinds of GPUs that a device of that name sees, as records name them; empty: none, or not
// known.
std::string gpus_of_this_machine(const std::string& device);

// Of one replica on cores, by its plan; 0 where this build has no engine.
double planned_replica_bytes(const std::string& workload, const Point& parameters);

}  // namespace paceline
