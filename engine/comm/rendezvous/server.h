// The bootstrap store's server: keys and values by which ranks find each other, and the other end
// of their control sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/rendezvous/address.h"

namespace paceline {

// One background thread. Whoever sends rubbish, a wrong token, or nothing within kGreetingSeconds
// is dropped without disturbing the others.
class StoreServer {
 public:
  static constexpr double kGreetingSeconds = 5;

  // Binds to `where.host`, never to all interfaces, at the first port of `where.ports` that is free
  // (0: any). Throws usage where none is, or where the host is not an address of this machine.
  StoreServer(const BootstrapAddress& where, int ranks);
  // Tells the ranks that this is a clean end, within a second, and joins. A process that ends for
  // another reason calls LivenessConnection::abort first.
  ~StoreServer();

  // What is in force, "10.0.0.3:29400": for PACELINE_STORE.
  const std::string& address() const { return address_; }

 private:
  class Loop;

  std::string address_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace paceline
