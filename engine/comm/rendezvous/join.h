// How a rank comes to a connection with the store: find, connect, shake hands.
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

// `hello`: hello_store or hello_control. Tries the address's ports again and again until one
// answers as our store; whatever else listens there is passed over. Throws stall when `seconds` are
// over; usage where the token is wrong (at once if there is but one port: on another of several it
// may be another job's store that says so); mismatch where the store refuses this rank.
Joined join_store(const BootstrapAddress& where, MessageType hello, int rank, double seconds);

}  // namespace paceline
