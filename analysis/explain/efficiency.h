// Where the time of a point's steps went, as POP's efficiencies: factors whose product is the share
// of the step that all ranks computed.
//
// POP Centre of Excellence, "POP standard metrics for parallel performance analysis". Theirs are
// load balance, serialization, transfer and computation scaling; input stall and launch, which POP
// has no name for, stand apart here. With means over ranks (step T, waiting for input i, other o,
// exposed communication c with its least c_min of any rank, computing u with its most u_max):
//   input         = (T - i) / T
//   launch        = (T - i - o) / (T - i)
//   transfer      = (T - i - o - c_min) / (T - i - o)    even the last rank to come has to wait so
//   long serialization = u_max / (T - i - o - c_min)          the others waited for ranks that were
//   late load balance  = u / u_max
// and, against the base of the speed-up, computation scaling = computing a sample there over here.
// Efficiency is then the ratio of the products, point over base, times computation scaling, but for
// what is spent outside of steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/row_facts.h"
#include "results/store.h"

namespace paceline {

// Seconds a sample, of all ranks together.
struct Costs {
  double input = 0, launch = 0, communication = 0, straggler = 0, compute = 0;
  double total() const { return input + launch + communication + straggler + compute; }
};

struct StepEfficiency {
  double input = 1, launch = 1, transfer = 1, serialization = 1, load_balance = 1;
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

  // Over a row's runs, as ratios of sums; nothing where a record has no phases of its ranks, as
  // published ones have not.
  std::optional<StepEfficiency> efficiency(const Row& row) const;
  std::optional<LateRank> late_rank(const Row& row) const;

 private:
  std::map<std::string, const Record*> records_;  // in the content
};

}  // namespace paceline
