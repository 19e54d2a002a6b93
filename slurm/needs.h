// How long an element may take and how much memory it may use: from records of runs like it, with a
// margin, and from the site's profile where there are none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "results/store.h"
#include "slurm/site.h"
#include "sweeps/expansion.h"
#include "sweeps/schedule.h"

namespace paceline {

struct Need {
  int minutes = 0;
  std::int64_t memory_mb = 0;  // of one node; 0: the site has no form for it
  bool time_is_known = false;  // from a record
};

class Needs {
 public:
  // `planned_bytes`: of one replica of a point, by its plan; 0 or empty: not known here.
  Needs(const Site& site, const std::vector<PlannedPoint>& points, const StoreContent& store,
        std::function<double(std::size_t point)> planned_bytes = {});

  // A run of this point ended at its limit.
  void timed_out(std::size_t point, int minutes);

  // Time: the slowest completed run of this point, else of any point of this shape, times the
  // margin, and two minutes to start; at least twice a limit that was too short; at most what the
  // site allows. Memory of a node: of its replicas by the plan, of such a run or made for it,
  // times 1.5, else what the site's profile says; half a GB a task and the cache that the point
  // asks for. Replicas on GPUs need the profile's word: their plan lies on the card.
  Need of(std::size_t point) const;

 private:
  double slowest_seconds(const PlannedPoint& planned) const;
  double replica_bytes(std::size_t point) const;

  const Site& site_;
  const std::vector<PlannedPoint>& points_;
  std::function<double(std::size_t)> planned_bytes_;
  std::vector<const Record*> completed_;
  std::map<std::size_t, int> timed_out_;
};

}  // namespace paceline
