#include "engine/comm/backends/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "engine/comm/algorithms/sum_over_parts.h"
#include "engine/core/error.h"

namespace paceline::mpi {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;  // MPI counts with an int

double spin_seconds(const World& world) {
  return world.node_size() <= world.node_cpus() ? kSpinMicroseconds * 1e-6 : 0;
}

NodeAllReduceState& control_in(const Window& window) {
  return *reinterpret_cast<NodeAllReduceState*>(window.part(0));  // zero bytes are a valid start
}

}  // namespace

MpiCommunicator::MpiCommunicator(World& world, const Deadlines& deadlines)
    : world_(world),
      patience_{deadlines, spin_seconds(world), {}},
      control_(world, world.node_rank() == 0 ? sizeof(NodeAllReduceState) : 0, patience_),
      scratch_(world, kScratchBytes, patience_),
      reduction_(control_in(control_), world.node_rank(), world.node_size(), deadlines,
                 spin_seconds(world) * 1e6, world.node_names()) {
  patience_.interrupt = [this] { reduction_.throw_if_aborted("the exchange between nodes"); };
  if (one_node() || world.node_rank() != 0) return;
  wire_ = std::make_unique<MpiWire>(world.leaders(), patience_, world.leader_names());
  ring_ = std::make_unique<Ring>(*wire_);
}

Memory MpiCommunicator::allocate(std::size_t bytes) {
  if (size() == 1) return {};
  // On a node with one rank too: what is in the window goes between nodes in one piece, what is
  // not in pieces of the scratch part, and all nodes must do the same.
  if (arena_) throw Error(ErrorKind::internal, "a second window was asked for");
  reduction_.barrier("allocate");
  arena_ = std::make_unique<Window>(world_, bytes, patience_);
  return Memory(arena_->mine(), bytes, MemoryKind::host, {});
}

void MpiCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                 std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    sum_over_parts(arena_.get(), scratch_.parts(), static_cast<std::size_t>(world_.node_rank()),
                   static_cast<std::byte*>(data), count, type,
                   [&](std::span<std::byte* const> parts, std::size_t n) {
                     reduce_parts(parts, n, type, label);
                   });
  });
}

void MpiCommunicator::reduce_parts(std::span<std::byte* const> parts, std::size_t count, DType type,
                                   std::string_view label) {
  if (one_node()) return reduction_.all_reduce(parts, count, type, label);
  reduction_.reduce_to_first(parts, count, type, label);
  if (ring_) ring_->all_reduce(parts[0], count, type, label);
  reduction_.copy_from_first(parts, count * size_of(type), label);
}

void MpiCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  auto* to = static_cast<std::byte*>(data);
  if (one_node()) return broadcast_on_node(to, bytes, root);
  for (std::size_t at = 0; at < bytes; at += kMostBytes) {
    const auto n = static_cast<int>(std::min(kMostBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(to + at, n, MPI_BYTE, root, world_.all(), &request), "MPI_Ibcast");
    wait_for(request, patience_, "broadcast");
  }
}

void MpiCommunicator::broadcast_on_node(std::byte* data, std::size_t bytes, int root) {
  for (std::size_t at = 0; at < bytes; at += kScratchBytes) {
    const std::size_t n = std::min(kScratchBytes, bytes - at);
    if (rank() == root) std::memcpy(scratch_.part(root), data + at, n);
    reduction_.barrier("broadcast");
    if (rank() != root) std::memcpy(data + at, scratch_.part(root), n);
    reduction_.barrier("broadcast");
  }
}

void MpiCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  const auto* from = static_cast<const std::byte*>(mine);
  auto* to = static_cast<std::byte*>(all);
  if (one_node()) return gather_on_node(from, bytes, to);
  if (bytes > INT_MAX) throw Error(ErrorKind::internal, "more than 2 GB to gather from a rank");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(from, static_cast<int>(bytes), MPI_BYTE, to, static_cast<int>(bytes),
                       MPI_BYTE, world_.all(), &request),
        "MPI_Iallgather");
  wait_for(request, patience_, "all-gather");
}

void MpiCommunicator::gather_on_node(const std::byte* mine, std::size_t bytes, std::byte* all) {
  for (std::size_t at = 0; at < bytes; at += kScratchBytes) {
    const std::size_t n = std::min(kScratchBytes, bytes - at);
    std::memcpy(scratch_.mine(), mine + at, n);
    reduction_.barrier("all-gather");
    for (std::size_t r = 0; r < scratch_.parts().size(); ++r) {
      std::memcpy(all + r * bytes + at, scratch_.part(static_cast<int>(r)), n);
    }
    reduction_.barrier("all-gather");
  }
}

void MpiCommunicator::barrier() {
  reduction_.barrier("barrier");
  if (one_node()) return;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(world_.all(), &request), "MPI_Ibarrier");
  wait_for(request, patience_, "barrier");
}

void MpiCommunicator::abort(std::string_view) noexcept {
  world_.fail();
  reduction_.abort();
}

}  // namespace paceline::mpi
