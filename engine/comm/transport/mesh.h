// Connections between the members of a group, which meet through the bootstrap store: Unix sockets
// within a machine, TCP between machines.
#pragma once

#include <map>
#include <string_view>

#include "engine/comm/communicator.h"
#include "engine/comm/group.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

class StoreClient;

// One bidirectional connection to each rank at a distance of a power of two, as rings and binomial
// trees need: at most 2 log2(size). Each rank listens at a local name and at the address of its
// interface on the route to the store. A rank whose local name does not answer runs on another
// machine. A connection is accepted only if the peer knows the secret that the listener put into
// the store. Several meshes of one world need different names.
//
// Collective over the group. Throws stall naming the missing ranks.
std::map<int, Descriptor> connect_mesh(StoreClient& store, const RankGroup& group,
                                       const Deadlines& deadlines, std::string_view name = "mesh");

}  // namespace paceline
