// Shares one sample cache among the processes of a node. The first process creates it, the others
// open it. If one cannot, each process of that node uses its own part of the budget.
#pragma once

#include <string>

#include "engine/comm/communicator.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

struct CacheSharing {
  int ranks = 1;          // number of ranks that share; the minimum over nodes
  std::size_t bytes = 0;  // memory limit of this rank's cache
  bool speaks = true;     // this rank reports the cache's fill level
  std::string refusal;    // why some ranks do not share, the same on every rank; may be empty
};

// Sets the caches of `data`'s stores. Collective over all replicas: the first replica of each
// process passes the data and the number of replicas in the process, its other replicas pass null.
// Throws as keep_apart().
CacheSharing share_cache(Communicator& communicator, DatasetPair* data, const InputOptions& options,
                         int replicas_here);

}  // namespace paceline
