// All collectives over a wire: sums in our ring, the control plane in a logarithm of rounds.
#pragma once

#include "engine/comm/algorithms/ring.h"
#include "engine/comm/communicator.h"
#include "engine/comm/transport/wire.h"

namespace paceline {

// Of a transport that has nothing faster; says how to abort it.
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
  // `wire` is the subclass's, alive for as long as collectives run.
  explicit WireCommunicator(Wire& wire) : wire_(wire), ring_(wire) {}

 private:
  Wire& wire_;
  Ring ring_;
};

// The control plane over a wire: small collectives, in the calling thread.
// Along a binomial tree from `root`.
void broadcast_over(Wire& wire, std::span<std::byte> data, int root);

// `all` holds a block of equal size for each member; this member's is filled in already. In
// log2(members) rounds, between members whose distance is a power of two.
void all_gather_over(Wire& wire, std::span<std::byte> all, std::string_view label);

}  // namespace paceline
