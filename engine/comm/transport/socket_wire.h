// A wire of connections of our own (mesh.h). The thread that waits reads and writes by itself:
// where a replica has one core, a helper thread would have to be scheduled for each message.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/rendezvous/socket.h"
#include "engine/comm/transport/wire.h"

namespace paceline {

class SocketWire final : public Wire {
 public:
  // `connections` by rank, as connect_mesh() makes them; messages go to these ranks only. Errors
  // call member m rank m * ranks_a_task.
  SocketWire(std::map<int, Descriptor> connections, int rank, int size, const Deadlines& deadlines,
             int ranks_a_task);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Messages messages() const override;
  std::string description() const;  // "TCP", "Unix sockets": of the links of this rank
  bool is_local() const { return local_links_ == links_.size(); }  // they are all of this machine
  std::span<std::byte> scratch() override;
  void begin(std::span<std::byte> data, std::string_view label) override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> message) override;
  void wait_received() override;
  void wait_sent(std::size_t sends) override;

  // Between collectives, where no rank may leave yet: throws peer_lost if one that this rank has a
  // connection with has hung up. `label`: what this rank waits at; empty: the last collective.
  void check_connections(std::string_view label = {});

  // Ends the waits of this rank, now and later, from any thread.
  void abort(std::string_view why) noexcept;

 private:
  struct Piece {  // what is left of a message
    int peer = 0;
    std::byte* at = nullptr;
    std::size_t left = 0;
  };
  struct Link {
    Descriptor socket;
    std::deque<std::size_t> out, in;  // unfinished pieces, of sends_ and receives_
    bool came = false;                // something, in this collective
  };

  void pump_until_done(const Piece& awaited);
  void progress_in(int peer, Link& link);
  void progress_out(int peer, Link& link);
  [[noreturn]] void throw_lost(int peer, std::string_view label) const;
  [[noreturn]] void throw_late(int peer, bool came) const;
  void throw_if_aborted();

  int rank_, size_;
  Deadlines deadlines_;
  int ranks_a_task_;
  std::map<int, Link> links_;
  std::size_t local_links_ = 0;
  Messages messages_{};
  std::vector<std::byte> scratch_;      // empty until the first sum: a control plane never has one
  std::deque<Piece> sends_, receives_;  // of this collective; a deque, so that they stay in place
  std::size_t waited_sends_ = 0, waited_receives_ = 0;
  std::string_view label_;

  WakeUp wake_up_;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::string why_;
};

}  // namespace paceline
