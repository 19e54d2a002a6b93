// The state of a run's replicas when it ended, from their flight rings: which rank was late, and
// what the others waited for.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "engine/failure/flight_reader.h"

namespace paceline {

class FailureSnapshot {
 public:
  FailureSnapshot() = default;
  // The state at `when`, in seconds since 1970: a stopped rank may be resumed in order to be ended,
  // and run for a moment.
  explicit FailureSnapshot(const std::vector<Flight>& flights,
                           double when = std::numeric_limits<double>::infinity());

  // Replicas that entered fewer collectives than others; if all entered equally many, those without
  // a sign of life for a while. Never all of them.
  std::vector<int> late() const;
  // All replicas of the processes that have one of these.
  std::vector<int> late_processes() const;
  std::vector<int> replicas_of_task(int task) const;

  // "rank 5 on n2", "ranks 2, 3 on n1". Omits unknown hosts.
  std::string format_ranks(const std::vector<int>& ranks) const;
  // " at step 416, bucket 3; the others wait at step 417, bucket 0", for these ranks. Empty if
  // nothing is known.
  std::string words_on(const std::vector<int>& ranks) const;

 private:
  const Flight* of(int rank) const;

  std::vector<int> silent() const;

  std::vector<Flight> flights_;  // with their last collective only
  double when_ = std::numeric_limits<double>::infinity();
};

}  // namespace paceline
