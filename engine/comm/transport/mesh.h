// Connections between ranks that meet through the bootstrap store, without a library: Unix sockets
// within a machine, TCP between machines.
#pragma once

#include <map>
#include <string_view>

#include "engine/comm/communicator.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

class StoreClient;

// One connection to each rank at a distance of a power of two, both ways: what rings and binomial
// trees need, 2 log2(size) at most. While it meets the others, each rank listens at a local name
// and on the address of its interface by the route to the store. A rank whose local name does not
// answer is on another machine. A connection is taken only from who knows the word that the
// listener left in the store. Several meshes of one world have several names.
//
// Collective. Throws stall, naming the ranks that did not come. Errors call rank r r *
// ranks_a_task.
std::map<int, Descriptor> connect_mesh(StoreClient& store, int rank, int size,
                                       const Deadlines& deadlines, int ranks_a_task,
                                       std::string_view name = "mesh");

}  // namespace paceline
