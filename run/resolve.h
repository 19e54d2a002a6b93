// Resolves a run: its parameters with defaults filled in, and its identity.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/checks/config_check.h"
#include "engine/comm/communicator.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/facts/fact.h"
#include "engine/launch/topology.h"
#include "engine/plan/plan.h"
#include "engine/train/memory_use.h"
#include "results/parameters.h"
#include "workloads/workload.h"

namespace paceline {

struct Resolved;
struct Workload;

constexpr char kFindDataFix[] = "give its folder by --data";

// For one workload, whose data set is hashed once. Throws usage or input as `paceline train` would.
class RunResolver {
 public:
  // With `data_is_absent`, a missing data set is reported to it once instead of thrown, and parts
  // that are not built are accepted. For planning on a machine that will not run the study.
  // `data_fix`: the cure of such a data set.
  explicit RunResolver(std::string workload, std::function<void(const Error&)> data_is_absent = {},
                       std::string data_fix = kFindDataFix)
      : workload_(std::move(workload)),
        data_fix_(std::move(data_fix)),
        data_is_absent_(std::move(data_is_absent)) {}
  Resolved resolve(const Point& given);  // without `program`

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

// Exchanges facts between all ranks before the start, and rejects inconsistent runs.

struct RankCard {
  PACELINE_FACT(fact::Text, host, "");
  PACELINE_FACT(fact::Text, cpus, "\"0-3\": the CPUs to which the replica is bound");
  PACELINE_FACT_FROM(-1, int, other_jobs, "other Slurm jobs on that host; -1: unknown", kAny);
  PACELINE_END_FACTS
};

// Rows that distinguish builds, and all parameters that affect measurements. Excludes file names,
// because contents are compared. For exchange_rank_cards().
std::vector<ConfigRow> rows_of_build();
std::vector<ConfigRow> make_rows(const Point& parameters);

// The cards of all ranks, in rank order. Throws mismatch with the differing rows unless all ranks
// have the same `rows`. `cpus` belong to this process's replicas. Collective.
std::vector<RankCard> exchange_rank_cards(std::vector<std::unique_ptr<Communicator>>& communicators,
                                          const std::vector<CpuSet>& cpus,
                                          const std::vector<ConfigRow>& rows);

// Number of other Slurm jobs on this host. -1: not in a job, or hidden.
int count_other_jobs();

// Whether replicas share CPUs. Throws usage in that case unless `oversubscribe`.
bool check_rank_cards(const std::vector<RankCard>& cards, bool oversubscribe);

// Estimates the memory of a replica before it runs.

// Plans a replica on the cpu device (for fp64 on `reference`), which fuses some layers. Uses
// batch_per_replica, precision, optimizer and variant of `parameters`, or the workload's defaults.
// Excludes the libraries' scratch. Throws usage if the device is not built.
MemoryUse planned_memory(const Workload& workload, const Point& parameters);

// Describes a workload: its layers, and what a replica takes in memory.

struct DescriptionRequest {
  std::string workload, variant, precision = "fp32";
  int batch = 0;  // of a replica; 0: the workload's
};

struct WorkloadDescription {
  Workload workload;
  Plan layers;       // each of its own; devices fuse some
  MemoryUse memory;  // of planned_memory()
  std::string precision;

  std::string text(std::size_t width) const;  // in lines of at most so many columns
  Json json() const;
};

// Throws usage: the workload or variant is unknown.
WorkloadDescription describe_workload(const DescriptionRequest& request);

}  // namespace paceline
