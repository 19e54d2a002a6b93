// Connects a rank to the store: find, connect, handshake.
#pragma once

#include <string>

#include "engine/comm/rendezvous/address.h"
#include "engine/comm/rendezvous/message.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

struct Joined {
  Descriptor socket;
  MessageParser parser;
  std::string server;  // "10.0.0.3:29400"
};

// `hello` is hello_store or hello_control. Retries all ports of the address until one answers as
// Paceline's store, and skips other services. Throws stall after `seconds`. Throws usage for a
// wrong token: immediately with a single port, else at the end, because it may be another job's
// store. Throws mismatch if the store rejects this rank.
Joined join_store(const BootstrapAddress& where, MessageType hello, int rank, double seconds);

}  // namespace paceline
