// Joint decisions of ranks between steps, at the cost of two small exchanges per second.
//
// A signal reaches ranks at different times, and their clocks differ. So ranks vote at steps that
// all of them know in advance. Each rank sends its requests and its step time. From these, all
// ranks compute the same next step for a vote, half a second later. So one rank's request reaches
// all ranks at the same step.
#pragma once

#include <cstddef>

#include "engine/comm/communicator.h"

namespace paceline {

struct PendingRequests {
  bool stop = false, save = false;
};

class RankVote {
 public:
  explicit RankVote(Communicator& communicator) : communicator_(communicator) {}

  // Whether to vote after `step` steps. The same on all ranks.
  bool is_due(std::size_t step) const { return step >= next_; }
  // Collective. Returns the requests of all ranks combined.
  PendingRequests ask(std::size_t step, PendingRequests mine);

 private:
  Communicator& communicator_;
  std::size_t next_ = 0, last_step_ = 0;
  double last_time_ = 0;  // of the previous vote; 0: none
};

}  // namespace paceline
