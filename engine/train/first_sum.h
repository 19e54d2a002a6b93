// Whether these ranks can sum at all, before anything long begins: a firewall between nodes, or a
// network that one of them lacks, shows in the first sum and not in the small messages before it.
#pragma once

#include <functional>

#include "engine/comm/communicator.h"

namespace paceline {

// `sum` queues and awaits a sum of `bytes` over the communicator; collective. Throws stall where it
// does not end within `seconds`; 0: without a limit.
void check_first_sum(Communicator& communicator, double seconds, std::size_t bytes,
                     const std::function<void()>& sum);

}  // namespace paceline
