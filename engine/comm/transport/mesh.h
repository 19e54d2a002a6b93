// TCP connections between ranks that meet through the bootstrap store, without a library.
#pragma once

#include <map>

#include "engine/comm/communicator.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

class StoreClient;

// One connection to each rank at a distance of a power of two, both ways: what rings and binomial
// trees need, 2 log2(size) at most. Each rank listens on the address of its interface by the route
// to the store while it meets the others; a connection is taken only from who knows the word that
// the listener left in the store.
//
// Collective. Throws stall, naming the ranks that did not come. Errors call rank r r *
// ranks_a_task.
std::map<int, Descriptor> connect_mesh(StoreClient& store, int rank, int size,
                                       const Deadlines& deadlines, int ranks_a_task);

}  // namespace paceline
