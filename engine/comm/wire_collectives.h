// The control plane over a wire: small collectives, in the calling thread.
#pragma once

#include "engine/comm/wire.h"

namespace paceline {

// Along a binomial tree from `root`.
void broadcast_over(Wire& wire, std::span<std::byte> data, int root);

// `all` holds a block of equal size for each member; this member's is filled in already. Blocks go
// round the ring.
void all_gather_over(Wire& wire, std::span<std::byte> all, std::string_view label);

}  // namespace paceline
