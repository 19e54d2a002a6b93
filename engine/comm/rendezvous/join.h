// Connects a rank to the store: find, connect, handshake.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/rendezvous/message.h"
#include "engine/comm/rendezvous/socket.h"
#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

// Finds the address of the bootstrap store from the environment.

inline constexpr const char* kStoreVariable = "PACELINE_STORE";
inline constexpr const char* kTokenVariable = "PACELINE_TOKEN";
inline constexpr const char* kPortsVariable = "PACELINE_PORTS";

struct BootstrapAddress {
  std::string host;                  // a name or numeric address; the server binds only to it
  std::vector<std::uint16_t> ports;  // in the order in which server and clients try them
  std::string token;
  // Without a token: the beginning of the name of a file in which rank 0 gives one, and the port.
  std::filesystem::path token_file = {};
  int ranks = 0;              // of the world
  bool rank0_hosts = false;   // else the process that started the ranks hosts it
  bool across_nodes = false;  // then it cannot be a loopback address
};

// PACELINE_STORE=host:port (with PACELINE_TOKEN) is the store of the process that started the
// ranks. Otherwise rank 0 hosts it, at the first of these that is set: PACELINE_STORE without a
// port, MASTER_ADDR, the first host of the Slurm step; on one node, 127.0.0.1. It uses a port of
// PACELINE_PORTS (default 29400-29499); a hash of the job's identity selects the first. MASTER_PORT
// belongs to torchrun and is never used.
//
// Without PACELINE_TOKEN, rank 0 makes a random token and gives it to the others by a file that
// only this user can read (token_file.h): in the status folder, else on one node in TMPDIR, else in
// the working directory. Throws usage with a cure.
BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment);

// For a starter that does not know the port yet: an address of this machine and the site's ports.
BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment);

// The first host of a Slurm node list: "n[01-04,07],m3" gives "n01". Throws usage.
std::string first_host(std::string_view nodelist);

struct Joined {
  Descriptor socket;
  MessageParser parser;
  std::string server;  // "10.0.0.3:29400"
};

// `hello` is hello_store or hello_control. Retries all ports of the address until one proves that
// it is this run's store, and skips others: who is silent delays it by a moment. Throws stall after
// `seconds`. Throws usage for a wrong token: immediately with a single port, else at the end,
// because it may be another job's store. Throws mismatch if the store rejects this rank.
Joined join_store(const BootstrapAddress& where, MessageType hello, int rank, double seconds);

// A rank's connection to the bootstrap store.

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
  [[noreturn]] void lost(const std::string& why = "the bootstrap store is gone");

  Joined joined_;
  int ranks_;
  double seconds_;
  std::uint64_t ticket_ = 0;
  std::mutex mutex_;
  std::string interrupted_;
};

}  // namespace paceline
