// Bandwidth-optimal all-reduce between n members. Each sends and receives 2 (n-1)/n of the data.
//
// The data is split into n *chunks*, one per member, and each chunk into *segments*, the messages.
// In step s of 2 (n-1), a member sends chunk (rank - s) to its right neighbour and receives chunk
// (rank - s - 1) from its left one. The first n-1 steps add the received chunk; afterwards each
// member holds the complete sum of one chunk. The other n-1 steps store the received chunk. A
// segment is forwarded as soon as it was added, so steps overlap and the link stays busy while the
// CPU adds. Two members exchange all their data pairwise instead: the same bytes at half the
// latency.
//
// Each element is summed once, in ring order from its chunk's owner. So every member gets the same
// bits in every run.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// 2009.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/comm/transport/socket_wire.h"
#include "engine/core/dtype.h"

namespace paceline {

class Ring {
 public:
  // `wire` outlives the ring.
  explicit Ring(Wire& wire) : wire_(wire) {}

  // Sums `count` elements at `data` over the members, in place. Blocks.
  void all_reduce(std::byte* data, std::size_t count, DType type, std::string_view label);

 private:
  Wire& wire_;
};

}  // namespace paceline
