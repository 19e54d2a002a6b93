// Connections between the members of a group, which meet through the bootstrap store: Unix sockets
// within a machine, TCP between machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

class StoreClient;

// One bidirectional connection to each rank at a distance of a power of two, as rings and binomial
// trees need: at most 2 log2(size). Each rank listens at a local name and at the address of its
// interface on the route to the store. A rank whose local name does not answer runs on another
// machine. A connection is accepted only if the peer knows the secret that the listener put into
// the store, and within a machine is of the same user. Strangers do not hold up the others. Several
// meshes of one world need different names.
//
// Collective over the group. Throws stall naming the missing ranks.
std::map<int, Descriptor> connect_mesh(StoreClient& store, const RankGroup& group,
                                       const Deadlines& deadlines, std::string_view name = "mesh");

// Where a rank of a mesh listens, as the store holds it.
struct MeshAddress {
  std::string host;  // numeric
  std::uint16_t port;
  std::string secret, local_name;
};
std::string to_text(const MeshAddress& address);
std::optional<MeshAddress> parse_mesh_address(const std::string& text);

// Whether every rank says yes. Collective.
bool all_agree(Communicator& ranks, bool mine);

// Memory that all ranks of a machine share, one part per rank: a file in /dev/shm, unlinked once
// all ranks have opened it.

// Gap between the parts of two ranks, in any kind of shared memory. Parts whose distance is
// (nearly) a power of two can evict each other from caches that are indexed by a hash of the
// address: on a Zen CPU, with 256 MB between parts, a sum of 1 MB took 180 us instead of 14. A gap
// of nine pages was good at all powers of two up to 256 MB; gaps of zero, one and three pages were
// not.
constexpr std::size_t kBetweenParts = std::size_t{9} * 4096;

class SharedParts {
 public:
  // Collective over `ranks`, which all run on one machine. Each part has `bytes`, starts on a page
  // boundary, is zeroed, and is first touched by its rank, so that it lies on the rank's NUMA node.
  // Null on all ranks if any of them fails, e.g. because /dev/shm is full or containers do not
  // share it.
  static std::unique_ptr<SharedParts> make(Communicator& ranks, std::size_t bytes);
  ~SharedParts();
  SharedParts(const SharedParts&) = delete;
  SharedParts& operator=(const SharedParts&) = delete;

  std::span<std::byte* const> parts() const { return parts_; }
  std::byte* mine() const { return parts_[rank_]; }
  bool holds(const void* data, std::size_t bytes) const;  // within this rank's part

 private:
  SharedParts(std::byte* all, std::size_t part_bytes, int rank, int size);

  std::size_t part_bytes_, rank_;
  std::vector<std::byte*> parts_;
};

}  // namespace paceline
