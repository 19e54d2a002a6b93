// Where the replicas of a run stood when it ended, from their flight rings: who came last, and what
// the others wait in.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "engine/failure/flight_reader.h"

namespace paceline {

class FailureSnapshot {
 public:
  FailureSnapshot() = default;
  // As they stood at `when`, in seconds since 1970: a rank that was stopped may be woken to be
  // ended, and go on for a moment.
  explicit FailureSnapshot(const std::vector<Flight>& flights,
                           double when = std::numeric_limits<double>::infinity());

  // Replicas that came to fewer collectives than others; where all came equally far, those that
  // gave no sign of life for a while. Never all of them.
  std::vector<int> late() const;
  // All replicas of their processes, for those that went with one of these.
  std::vector<int> late_processes() const;
  std::vector<int> replicas_of_task(int task) const;

  // "rank 5 on n2", "ranks 2, 3 on n1"; without a host where none is known.
  std::string name_of(const std::vector<int>& ranks) const;
  // " at step 416, bucket 3; the others wait at step 417, bucket 0", of these; empty where nothing
  // is known.
  std::string words_on(const std::vector<int>& ranks) const;

 private:
  const Flight* of(int rank) const;

  std::vector<int> silent() const;

  std::vector<Flight> flights_;  // with their last collective only
  double when_ = std::numeric_limits<double>::infinity();
};

}  // namespace paceline
