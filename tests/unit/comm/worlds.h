// A store on this machine, for the tests of what talks to it.
#pragma once

#include "engine/comm/rendezvous/server.h"
#include "engine/comm/rendezvous/socket.h"
#include "engine/core/text.h"

namespace paceline {

inline constexpr double kPatience = 20;  // for a busy machine; nothing here waits that long

inline BootstrapAddress any_port(const std::string& host = "127.0.0.1") {
  BootstrapAddress address;
  address.host = host;
  address.ports = {0};
  address.token = "right token";
  return address;
}

inline std::uint16_t parse_port(const StoreServer& server) {
  return static_cast<std::uint16_t>(*to_integer(split(server.address(), ':').back()));
}

// A store with a port of its own, and what its clients are told.
struct World {
  explicit World(int ranks) : server(any_port(), ranks), where(any_port()) {
    where.ports = {parse_port(server)};
  }
  StoreServer server;
  BootstrapAddress where;
};

inline Endpoint loopback() {
  return resolve("127.0.0.1").front();
}

inline Descriptor connect_to_port(std::uint16_t port) {
  return connect_to(loopback(), port, Deadline(kPatience));
}

}  // namespace paceline
