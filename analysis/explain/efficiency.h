// Step time split into POP's efficiencies: factors whose product is the share of the step in which
// all ranks computed.
//
// POP Centre of Excellence, "POP standard metrics for parallel performance analysis". POP has load
// balance, serialization, transfer and computation scaling. Input stall and launch have no POP
// name, so they are separate factors here. With means over ranks (step T, waiting for input i,
// other o, exposed communication c, the part c_min of it in which all ranks wait, computing u, its
// maximum over ranks u_max):
//   input         = (T - i) / T
//   launch        = (T - i - o) / (T - i)
//   transfer      = (T - i - o - c_min) / (T - i - o)    even the last rank to come has to wait so
//   long serialization = u_max / (T - i - o - c_min)          the others waited for ranks that were
//   late load balance  = u / u_max
// and, against the base of the speed-up, computation scaling = compute time per sample of the base
// / that of the point. Efficiency is the ratio of the products, point over base, times computation
// scaling. Time outside of steps is not included.
//
// c_min is the smallest wait of any rank in each step, summed over steps. Totals per rank would
// overestimate it: ranks that are late in turn make each other wait, and each has a large total.
// Without step samples beside the record, the smallest total of any rank is used, an upper bound of
// c_min. Transfer is then a lower bound and serialization an upper bound. Ranks that train
// independently (backend null) never wait for each other: their serialization and load balance are
// 1.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/loss_parts.h"
#include "analysis/study/scaling_series.h"
#include "analysis/study/study.h"
#include "results/store.h"

namespace paceline {

struct StepEfficiency {
  double input = 1, launch = 1, transfer = 1, serialization = 1, load_balance = 1;
  // Only totals per rank are known. Then transfer and the straggler cost are lower bounds;
  // serialization and the communication cost are upper bounds.
  bool is_bound = false;
  // Only totals over all steps are known, but the compared rates exclude the warm-up steps.
  bool has_warmup = false;
  Costs costs;
  double product() const { return input * launch * transfer * serialization * load_balance; }
};

// The rank that more than half of the runs of a row name as straggler.
struct LateRank {
  int rank = 0;
  std::string host, phase;   // empty if these runs differ in it
  double share_of_step = 0;  // mean over these runs
  std::size_t runs = 0, runs_of_row = 0;
  bool computes_longest = false;  // in each run of the row, by totals
};

// Phases and stragglers of runs.
class StepRecords {
 public:
  // Mean over a row's runs, as ratios of summed shares. Empty if a record has no phases per rank
  // (published records have none). When rates are compared, covers the same steps as the rates.
  std::optional<StepEfficiency> efficiency(const Row& row, bool rates) const;
  // One entry for each run that has an efficiency. When rates are compared, time outside of steps
  // costs nothing.
  std::vector<Costs> costs(const Row& row, bool rates) const;
  std::optional<LateRank> late_rank(const Row& row, bool rates) const;

 private:
  struct Phases;
  const Phases* find_phases(const Run& run, bool rates) const;  // null: the record has no phases

  mutable std::map<std::string, std::shared_ptr<const Phases>> phases_;  // by Run::where
};

// Whether communication waits for a CPU: what a sweep over CPUs per task and backends can show.

// One sentence for each backend and number of replicas whose exposed communication per step is, at
// 95 %, more than twice as long with the fewest CPUs a replica as with more, and at least a tenth
// of a step there. Only rows of three runs or more, on as many nodes, that differ in nothing else.
std::vector<std::string> cpu_for_communication(const Study& study);

}  // namespace paceline
