// Bandwidth-optimal all-reduce between n members: each sends and receives 2 (n-1)/n of the data.
//
// The data is cut into n *chunks*, one a member, and each chunk into *segments*, the messages. In
// step s of 2 (n-1) a member sends chunk (rank - s) to its right neighbour and receives chunk
// (rank - s - 1) from its left one: n-1 steps add what is received (afterwards a member holds one
// chunk's whole sum), n-1 steps store it. A segment goes on as soon as it has been added, so steps
// overlap and the link never idles while the processor adds. Two members exchange all of their data
// pairwise instead: as many bytes, half the latency.
//
// Each element is added in one order, that of the ring from its chunk's owner on, and computed
// once: every member gets the same bits, and every run.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// 2009.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/comm/transport/wire.h"
#include "engine/core/dtype.h"

namespace paceline {

class Ring {
 public:
  // `wire` outlives the ring.
  explicit Ring(Wire& wire) : wire_(wire) {}

  // The sum over members of `count` elements at `data`, in place. Blocks.
  void all_reduce(std::byte* data, std::size_t count, DType type, std::string_view label);

 private:
  Wire& wire_;
};

}  // namespace paceline
