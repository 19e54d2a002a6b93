// One cache of samples for all processes of a node: the first of them makes it, the others open it,
// and where one cannot, each of that node keeps its own part of the budget.
#pragma once

#include <string>

#include "engine/comm/communicator.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

struct CacheSharing {
  int ranks = 1;          // that keep their samples together; the least over nodes
  std::size_t bytes = 0;  // of memory that this rank's cache may take
  bool speaks = true;     // for this rank's cache: who tells how full it is
  std::string refusal;    // why some keep their own instead, the same on every rank; empty: none do
};

// Gives `data`'s stores their cache. Collective over all replicas, each process's first one with
// the data, and how many replicas the process holds; its others with null. Throws as keep_apart().
CacheSharing share_cache(Communicator& communicator, DatasetPair* data, const InputOptions& options,
                         int replicas_here);

}  // namespace paceline
