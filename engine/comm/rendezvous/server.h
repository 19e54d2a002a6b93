// The server of the bootstrap store: keys and values through which ranks find each other, and the
// other end of their control sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/rendezvous/address.h"

namespace paceline {

// One background thread. Drops peers that violate the protocol, send a wrong token, or send nothing
// within kGreetingSeconds. This does not affect other peers.
class StoreServer {
 public:
  static constexpr double kGreetingSeconds = 5;

  // Binds to `where.host`, never to all interfaces, at the first free port of `where.ports` (0:
  // any). Throws usage if no port is free, or if the host is not an address of this machine.
  StoreServer(const BootstrapAddress& where, int ranks);
  // Announces a clean end to the ranks, within a second, and joins the thread. A process that ends
  // for another reason calls LivenessConnection::abort first.
  ~StoreServer();

  // The actual address, "10.0.0.3:29400", for PACELINE_STORE.
  const std::string& address() const { return address_; }

 private:
  class Loop;

  std::string address_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace paceline
