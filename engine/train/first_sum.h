// Tests that these ranks can sum before anything long starts. A firewall between nodes, or a
// network that a node lacks, affects the first sum but not the small messages before it.
#pragma once

#include <functional>

#include "engine/comm/communicator.h"

namespace paceline {

// `sum` queues a sum of `bytes` over the communicator and waits for it; collective. Throws stall if
// it takes longer than `seconds`; 0: no limit.
void check_first_sum(Communicator& communicator, double seconds, std::size_t bytes,
                     const std::function<void()>& sum);

}  // namespace paceline
