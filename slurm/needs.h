// How long an element may take and how much memory it may use: from records of runs like it, with a
// margin, and from the site's profile where there are none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"
#include "slurm/site.h"
#include "sweeps/expansion.h"
#include "sweeps/schedule.h"

namespace paceline {

enum class Expectation { none, published, records };

struct Need {
  int minutes = 0;              // the limit
  std::int64_t memory_mb = 0;   // of one node; 0: the site has no form for it
  bool time_is_known = false;   // the limit is from a record
  double expected_seconds = 0;  // what it will take; without an expectation: the limit
  Expectation expected_by = Expectation::none;
};

class Needs {
 public:
  // `planned_bytes`: of one replica of a point, by its plan; 0 or empty: not known here.
  Needs(const Site& site, const std::vector<PlannedPoint>& points, const StoreContent& store,
        std::function<double(std::size_t point)> planned_bytes = {});

  // Records of published tables, of `workload`, with the epochs that each point asks for (none: it
  // has other goals). They say what to expect, and change no limit. `rows` outlives this.
  void expect_published(const std::vector<Record>& rows, const std::string& workload,
                        std::function<std::optional<double>(std::size_t point)> epochs);

  // A run of this point ended at its limit.
  void timed_out(std::size_t point, int minutes);

  // Time: the slowest completed run of this point, else of any point of this shape, times the
  // margin, and two minutes to start; at least twice a limit that was too short; at most what the
  // site allows. Memory of a node: of its replicas by the plan, of such a run or made for it,
  // times 1.5, else what the site's profile says; half a GB a task and the cache that the point
  // asks for. Replicas on GPUs need the profile's word: their plan lies on the card. Expected is
  // the mean of such records, else of published rows of as many GPUs, those of as many CPUs first.
  Need of(std::size_t point) const;

 private:
  double slowest_seconds(const PlannedPoint& planned) const;
  void expect(Need& need, std::size_t point) const;
  double published_seconds(std::size_t point) const;
  double replica_bytes(std::size_t point) const;

  const Site& site_;
  const std::vector<PlannedPoint>& points_;
  std::function<double(std::size_t)> planned_bytes_;
  std::vector<const Record*> completed_;
  std::map<std::size_t, int> timed_out_;
  std::vector<const Record*> published_;
  std::function<std::optional<double>(std::size_t)> epochs_;
};

}  // namespace paceline
