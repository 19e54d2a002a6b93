// Where the time of a point's steps went, as POP's efficiencies: factors whose product is the share
// of the step that all ranks computed.
//
// POP Centre of Excellence, "POP standard metrics for parallel performance analysis". Theirs are
// load balance, serialization, transfer and computation scaling; input stall and launch, which POP
// has no name for, stand apart here. With means over ranks (step T, waiting for input i, other o,
// exposed communication c, of which all ranks wait c_min, computing u with its most u_max):
//   input         = (T - i) / T
//   launch        = (T - i - o) / (T - i)
//   transfer      = (T - i - o - c_min) / (T - i - o)    even the last rank to come has to wait so
//   long serialization = u_max / (T - i - o - c_min)          the others waited for ranks that were
//   late load balance  = u / u_max
// and, against the base of the speed-up, computation scaling = computing a sample there over here.
// Efficiency is then the ratio of the products, point over base, times computation scaling, but for
// what is spent outside of steps.
//
// c_min is the least wait of any rank in each step, summed over steps: ranks that are late in turn
// make each other wait, and all of them wait long in total. Where the samples of the steps are not
// beside the record, the least total of any rank is an upper bound of it, so transfer is one from
// below and serialization one from above. Ranks that train apart (backend null) make no other wait:
// their serialization and load balance are 1.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/row_facts.h"
#include "results/store.h"

namespace paceline {

// Seconds a sample, of all ranks together.
struct Costs {
  double input = 0, launch = 0, communication = 0, straggler = 0, compute = 0;
  double outside = 0;  // of steps: start, choice of algorithms, what lies between epochs
  double in_steps() const { return input + launch + communication + straggler + compute; }
  double total() const { return in_steps() + outside; }
};

struct StepEfficiency {
  double input = 1, launch = 1, transfer = 1, serialization = 1, load_balance = 1;
  // Only totals of the ranks are known: transfer is at least, serialization at most what stands
  // here, and of `costs` communication at most, straggler at least.
  bool is_bound = false;
  // Only totals of all steps are known, and the rates that are compared leave the first ones out.
  bool has_warmup = false;
  Costs costs;
  double product() const { return input * launch * transfer * serialization * load_balance; }
};

// The rank that most of a row's runs name as the one that held the others up.
struct LateRank {
  int rank = 0;
  std::string host, phase;
  double share_of_step = 0;  // mean over these runs
  std::size_t runs = 0;
};

// What records say of phases and stragglers, by Run::where.
class StepRecords {
 public:
  explicit StepRecords(const StoreContent& content);

  // Over a row's runs, as ratios of the sums of their shares; nothing where a record has no phases
  // of its ranks, as published ones have not. Where rates are compared, of the steps that these are
  // of.
  std::optional<StepEfficiency> efficiency(const Row& row, bool rates) const;
  // Of each run of a row that has an efficiency. Where rates are compared, what lies outside of
  // steps costs nothing.
  std::vector<Costs> costs(const Row& row, bool rates) const;
  std::optional<LateRank> late_rank(const Row& row) const;

 private:
  struct Phases;
  const Phases* phases_of(const Run& run, bool rates) const;  // none: the record has none

  std::map<std::string, const Record*> records_;                         // in the content
  mutable std::map<std::string, std::shared_ptr<const Phases>> phases_;  // read when asked for
};

}  // namespace paceline
