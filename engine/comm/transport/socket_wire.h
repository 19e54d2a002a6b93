// A wire over sockets (mesh.h). The waiting thread itself reads and writes: with one core per
// replica, a helper thread would have to be scheduled for each message.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

// Messages between the members of a ring: what `ring.h` needs from a transport (MPI, TCP).
//
// Within a collective, messages from one member to another arrive in the order of sending, and fill
// receives in the order of posting. Empty messages complete immediately and are not sent. Only
// waits block. They have a deadline, after which they throw stall; after an abort they throw
// peer_lost. Both name the rank they waited for.

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;  // index among the members
  virtual int size() const = 0;

  // The message size that suits this transport, and how many receives to post ahead.
  struct Messages {
    std::size_t bytes, window;
  };
  virtual Messages messages() const = 0;
  // A buffer for messages().window messages that receives may use. Valid as long as the wire.
  virtual std::span<std::byte> scratch() = 0;

  // Starts a collective. Its messages are in `data` or in scratch().
  virtual void begin(std::span<std::byte> data, std::string_view label) = 0;
  virtual void send(int to, std::span<const std::byte> message) = 0;
  virtual void receive(int from, std::span<std::byte> message) = 0;
  // Waits until the oldest receive not yet waited for is complete.
  virtual void wait_received() = 0;
  // Waits until the first `sends` sends of this collective are complete and their buffers can be
  // reused.
  virtual void wait_sent(std::size_t sends) = 0;
};

class SocketWire final : public Wire {
 public:
  // `connections` by member, from connect_mesh(). Messages go only to these members.
  SocketWire(std::map<int, Descriptor> connections, RankGroup group, const Deadlines& deadlines);

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size(); }
  Messages messages() const override;
  std::string description() const;  // "TCP", "Unix sockets": the links of this rank
  // All links are within this machine.
  bool is_local() const { return local_links_ == links_.size(); }
  std::span<std::byte> scratch() override;
  void begin(std::span<std::byte> data, std::string_view label) override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> message) override;
  void wait_received() override;
  void wait_sent(std::size_t sends) override;

  // Call between collectives, while no rank may leave. Throws peer_lost if a connected rank has
  // hung up. `label`: what this rank waits at; empty: the last collective.
  void check_connections(std::string_view label = {});

  // Ends all waits of this rank, now and later. From any thread.
  void abort(std::string_view why) noexcept;

 private:
  struct Piece {  // the rest of a message
    int peer = 0;
    std::byte* at = nullptr;
    std::size_t left = 0;
  };
  struct Link {
    Descriptor socket;
    std::deque<std::size_t> out, in;  // unfinished pieces: indices into sends_ and receives_
    bool came = false;                // something arrived in this collective
  };

  void pump_until_done(const Piece& awaited);
  void progress_in(int peer, Link& link);
  void progress_out(int peer, Link& link);
  [[noreturn]] void throw_lost(int peer, std::string_view label) const;
  [[noreturn]] void throw_late(int peer, bool came) const;
  void throw_if_aborted();

  int name_of_member(int peer) const { return group_.names[static_cast<std::size_t>(peer)]; }

  RankGroup group_;
  Deadlines deadlines_;
  std::map<int, Link> links_;
  std::size_t local_links_ = 0;
  Messages messages_{};
  std::vector<std::byte> scratch_;      // empty until the first sum; a control plane has none
  std::deque<Piece> sends_, receives_;  // of this collective; deques keep the addresses stable
  std::size_t waited_sends_ = 0, waited_receives_ = 0;
  std::string_view label_;

  WakeUp wake_up_;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::string why_;
};

}  // namespace paceline
