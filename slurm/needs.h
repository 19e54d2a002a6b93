// Estimates time and memory of array elements from records of similar runs, with a margin, or from
// the site profile.
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
#include "sweeps/inventory.h"

namespace paceline {

enum class Expectation { none, published, records };

struct Need {
  int minutes = 0;              // the time limit
  std::int64_t memory_mb = 0;   // per node, in Slurm's M; 0: the site has no form for memory
  bool time_is_known = false;   // the limit is based on a record
  bool is_cut = false;          // by the site's limit
  double expected_seconds = 0;  // expected duration; the limit if unknown
  Expectation expected_by = Expectation::none;

  void add_minutes(int more, const Site& site);  // at most the site's limit
};

// The key of a site profile that raises the time limit.
inline constexpr char kMostMinutesKey[] = "time.most_minutes";  // nothing else does
const char* limit_key(const Site& site, const Need& need);

class Needs {
 public:
  // `planned_bytes`: memory of one replica of a point according to its plan; 0 or empty: unknown.
  Needs(const Site& site, const std::vector<PlannedPoint>& points, const StoreContent& store,
        std::function<double(std::size_t point)> planned_bytes = {});

  // Uses records of published tables of `workload`. `epochs` returns the epochs of a point (empty:
  // it has a goal). They affect expectations, not limits. `rows` outlives this object.
  void expect_published(const std::vector<Record>& rows, const std::string& workload,
                        std::function<std::optional<double>(std::size_t point)> epochs);

  // A run of this point was ended by its time limit.
  void timed_out(std::size_t point, int minutes);

  // Time: the slowest completed run of this point, else of any point with this shape, times the
  // margin, plus two minutes to start; at least twice a limit that was too short; at most the
  // site's limit. Memory of a node: that of the replicas' plan, or of such a run, times 1.5, else
  // the site profile's, plus half a GB per task. For replicas on GPUs the profile decides, because
  // their plan is in GPU memory. The point's cache is added. Expected time: the mean of such
  // records, else of published rows with the same number of GPUs, preferring equal CPUs.
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
