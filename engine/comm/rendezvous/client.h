// A rank's connection to the bootstrap store.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "engine/comm/rendezvous/join.h"

namespace paceline {

// Not thread-safe, except interrupt().
class StoreClient {
 public:
  // Joins, retrying for `seconds`. Throws as join_store().
  StoreClient(const BootstrapAddress& where, int rank, double seconds);

  // Returns when the store has the value. A later set of the same key replaces it. Keys have at
  // most 1 KB, values 1 MB. Throws peer_lost if the store is gone.
  void set(const std::string& key, const std::string& value);

  // Waits until the key is set. After `seconds`, throws stall: "`what` did not come within 120 s";
  // `what` defaults to the key. Throws peer_lost if the store is gone.
  std::string get(const std::string& key, double seconds, const std::string& what = "");

  // The numeric address of this end of the connection, i.e. of the interface on the route to the
  // store. In the process that hosts the store: the address to which the server is bound.
  std::string local_address() const { return find_local_host(joined_.socket); }
  const std::string& server() const { return joined_.server; }

  // Makes the current call and all later ones throw peer_lost with this text.
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
