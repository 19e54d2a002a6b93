// A rank's view of the bootstrap store.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "engine/comm/rendezvous/join.h"

namespace paceline {

// One thread at a time, but interrupt() from any.
class StoreClient {
 public:
  // Joins; retries until `seconds` pass. Errors as join_store's.
  StoreClient(const BootstrapAddress& where, int rank, double seconds);

  // Returns once the store holds it. A later set of the same key replaces the value. At most 1 KB
  // and 1 MB. Throws peer_lost where the store vanished.
  void set(const std::string& key, const std::string& value);

  // Waits until the key is set. Past `seconds` throws stall: "`what` did not come within 120 s";
  // `what` defaults to the key's name. Throws peer_lost where the store vanished.
  std::string get(const std::string& key, double seconds, const std::string& what = "");

  // Numeric address of this side of the connection: of the interface by the route to the root. For
  // the process that hosts the store it is the address that the server is bound to.
  std::string local_address() const { return local_host_of(joined_.socket); }
  const std::string& server() const { return joined_.server; }

  // A call in progress and all later ones throw peer_lost with this text.
  void interrupt(const std::string& why) noexcept;

 private:
  Message request(Message message, MessageType answer, double seconds, const std::string& what);
  [[noreturn]] void lost();

  Joined joined_;
  double seconds_;
  std::uint64_t ticket_ = 0;
  std::mutex mutex_;
  std::string interrupted_;
};

}  // namespace paceline
