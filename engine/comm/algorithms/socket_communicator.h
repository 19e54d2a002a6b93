// Ranks that communicate over Paceline's own sockets.
#pragma once

#include <utility>

#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/transport/socket_wire.h"

namespace paceline {

class SocketCommunicator : public WireCommunicator {
 public:
  // See SocketWire.
  SocketCommunicator(std::map<int, Descriptor> connections, RankGroup group,
                     const Deadlines& deadlines)
      : WireCommunicator(wire_), wire_(std::move(connections), std::move(group), deadlines) {}

  std::string description() const { return wire_.description(); }
  bool is_local() const { return wire_.is_local(); }
  // See SocketWire.
  void check_connections(std::string_view label = {}) { wire_.check_connections(label); }
  void abort(std::string_view why) noexcept override { wire_.abort(why); }

 private:
  SocketWire wire_;
};

}  // namespace paceline
