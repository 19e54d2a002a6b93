// What ranks decide together between steps, at the price of two small exchanges a second.
//
// A signal reaches ranks at different moments, and a clock shows them different times. So ranks ask
// each other at steps that all of them know beforehand: each says what it requests and how long its
// steps take, and from these answers all compute the same next step at which to ask, half a second
// later. A wish of one is then heard by all at one step.
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

  // After `step` steps, in the same order on all ranks: whether this is a step to ask at.
  bool is_due(std::size_t step) const { return step >= next_; }
  // Collective: what any rank requests.
  PendingRequests ask(std::size_t step, PendingRequests mine);

 private:
  Communicator& communicator_;
  std::size_t next_ = 0, last_step_ = 0;
  double last_time_ = 0;  // of the question before; 0: none
};

}  // namespace paceline
