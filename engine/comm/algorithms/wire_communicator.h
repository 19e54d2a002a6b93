// All collectives over a wire: sums in a ring, the control plane in log2(ranks) rounds.
#pragma once

#include <utility>

#include "engine/comm/algorithms/ring.h"
#include "engine/comm/communicator.h"
#include "engine/comm/transport/socket_wire.h"

namespace paceline {

// For transports without a faster all-reduce. Subclasses implement abort().
class WireCommunicator : public Communicator {
 public:
  int rank() const final { return wire_.rank(); }
  int size() const final { return wire_.size(); }
  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) final;
  void all_gather(const void* mine, std::size_t bytes, void* all) final;
  void barrier() final;

 protected:
  // `wire` belongs to the subclass, and must live as long as collectives run.
  explicit WireCommunicator(Wire& wire) : wire_(wire), ring_(wire) {}

 private:
  Wire& wire_;
  Ring ring_;
};

// Broadcast over a wire, along a binomial tree from `root`, in the calling thread.
void broadcast_over(Wire& wire, std::span<std::byte> data, int root);

// All-gather over a wire, in log2(members) rounds between members whose distance is a power of two.
// `all` has one block of equal size per member; this member's block is already filled in.
void all_gather_over(Wire& wire, std::span<std::byte> all, std::string_view label);

// Ranks that communicate over Paceline's own sockets.

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
