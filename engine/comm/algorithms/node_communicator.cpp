#include "engine/comm/algorithms/node_communicator.h"

#include <algorithm>
#include <utility>

#include "engine/comm/algorithms/sum_over_parts.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kScratchAt = (sizeof(NodeAllReduceState) + 4095) / 4096 * 4096;

Communicator& ranks_of_node(const NodeSetup& setup) {
  return setup.node ? *setup.node : *setup.all;
}

// Zeroed parts for the ranks of every node, or for none.
std::unique_ptr<SharedParts> make_parts(const NodeSetup& setup, std::size_t bytes) {
  auto parts = SharedParts::make(ranks_of_node(setup), bytes);
  const char made = parts ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(setup.all->size()));
  setup.all->all_gather(&made, 1, all.data());  // a barrier, too: all parts are zeroed
  if (std::find(all.begin(), all.end(), 0) != all.end()) parts.reset();
  return parts;
}

}  // namespace

std::unique_ptr<NodeCommunicator> NodeCommunicator::make(NodeSetup& setup) {
  auto shared = make_parts(setup, kScratchAt + kScratchBytes);
  if (!shared) return nullptr;
  return std::unique_ptr<NodeCommunicator>(
      new NodeCommunicator(std::move(setup), std::move(shared)));
}

NodeCommunicator::NodeCommunicator(NodeSetup setup, std::unique_ptr<SharedParts> shared)
    : setup_(std::move(setup)),
      shared_(std::move(shared)),
      reduction_(*reinterpret_cast<NodeAllReduceState*>(shared_->parts()[0]),
                 ranks_of_node(setup_).rank(), ranks_of_node(setup_).size(), setup_.deadlines,
                 setup_.spin_microseconds, setup_.names) {
  for (std::byte* part : shared_->parts()) scratch_.push_back(part + kScratchAt);
  if (setup_.watch) reduction_.watch(setup_.watch);
}

// On a node with one rank too: data in the arena goes between nodes in one piece, other data in
// pieces of the scratch part, and all nodes must do the same.
Memory NodeCommunicator::allocate(std::size_t bytes) {
  if (arena_) throw Error(ErrorKind::internal, "a second arena was asked for");
  arena_ = make_parts(setup_, bytes);
  if (!arena_) return {};
  return Memory(arena_->mine(), bytes, MemoryKind::host, {});
}

void NodeCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    sum_over_parts(arena_.get(), scratch_, static_cast<std::size_t>(reduction_.rank()),
                   static_cast<std::byte*>(data), count, type,
                   [&](std::span<std::byte* const> parts, std::size_t n) {
                     reduce_parts(parts, n, type, label);
                   });
  });
}

void NodeCommunicator::reduce_parts(std::span<std::byte* const> parts, std::size_t count,
                                    DType type, std::string_view label) {
  if (!has_leaders_) return reduction_.all_reduce(parts, count, type, label);
  reduction_.reduce_to_first(parts, count, type, label);
  if (leaders_) leaders_->all_reduce(parts[0], count, type, leaders_lane_, label);
  reduction_.copy_from_first(parts, count * size_of(type), label);
}

// The ranks of a node know which of them did not come.
void NodeCommunicator::barrier() {
  reduction_.barrier("barrier");
  if (has_leaders_) setup_.all->barrier();
}

void NodeCommunicator::abort(std::string_view why) noexcept {
  setup_.all->abort(why);
  if (setup_.node) setup_.node->abort(why);
  if (leaders_) leaders_->abort(why);
  reduction_.abort();
}

}  // namespace paceline
