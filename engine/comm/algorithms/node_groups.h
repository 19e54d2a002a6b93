// Which ranks share a node.
#pragma once

#include <optional>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// For tests: this many consecutive ranks count as a node, so that one machine emulates several.
inline constexpr char kRanksPerNodeVariable[] = "PACELINE_TEST_RANKS_PER_NODE";
std::optional<int> test_ranks_per_node();  // throws usage

struct NodeGroups {
  std::vector<int> mine;      // the ranks of this node, in order
  std::vector<int> leaders;   // the first rank of each node, in order
  bool has_cpu_each = false;  // the ranks of this node may use at least one CPU each

  std::size_t nodes() const { return leaders.size(); }
};

// Collective. Ranks share a node if they have the same kernel, the same /dev/shm and the same
// network.
NodeGroups find_nodes(Communicator& all);

}  // namespace paceline
