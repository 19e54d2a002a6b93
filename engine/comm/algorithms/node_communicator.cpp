#include "engine/comm/algorithms/node_communicator.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/launch/process_rank.h"

namespace paceline {

namespace {

constexpr std::size_t kScratchAt = (sizeof(NodeAllReduceState) + 4095) / 4096 * 4096;

Communicator& ranks_of_node(const NodeSetup& setup) {
  return setup.node ? *setup.node : *setup.all;
}

// Zeroed parts for the ranks of every node, or for none.
std::unique_ptr<SharedParts> make_parts(const NodeSetup& setup, std::size_t bytes) {
  auto parts = SharedParts::make(ranks_of_node(setup), bytes);
  // A barrier, too: all parts are zeroed.
  if (!all_agree(*setup.all, parts != nullptr)) parts.reset();
  return parts;
}

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // "yield" does nothing where a core is one thread
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

// Slices begin on cache lines, so that no two ranks write one line.
std::size_t slice_begin(std::size_t count, std::size_t element_bytes, int rank, int size) {
  const std::size_t line = 64 / element_bytes;
  const std::size_t lines = (count + line - 1) / line;
  return std::min(count,
                  lines * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size) * line);
}

// What a rank says of itself.
struct NodeCard {
  std::uint64_t node = 0;
  cpu_set_t cpus{};
};

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
  if (arena_) throw internal_error("a second arena was asked for");
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

NodeAllReduce::NodeAllReduce(NodeAllReduceState& control, int rank, int size, Deadlines deadlines,
                             double spin_microseconds, std::vector<int> names)
    : control_(control),
      rank_(rank),
      size_(size),
      deadlines_(deadlines),
      spin_seconds_(spin_microseconds * 1e-6),
      names_(std::move(names)) {
  if (size > kMaxTeam) {
    throw usage_error(fmt::format("{} ranks on one node are too many", size), "",
                      fmt::format("use at most {}", kMaxTeam));
  }
}

int NodeAllReduce::name_of_rank(int rank) const {
  return names_.empty() ? rank : names_[static_cast<std::size_t>(rank)];
}

bool NodeAllReduce::all_arrived(std::uint32_t epoch) const {
  for (int r = 0; r < size_; ++r) {
    const std::uint32_t seen = control_.arrived[static_cast<std::size_t>(r)].epoch.load();
    if (static_cast<std::int32_t>(seen - epoch) < 0) return false;  // epochs may wrap
  }
  return true;
}

void NodeAllReduce::barrier(std::string_view label, double extra_seconds) {
  const std::uint32_t epoch = ++epoch_;
  control_.arrived[static_cast<std::size_t>(rank_)].epoch.store(epoch);
  if (control_.sleepers.load() > 0) ring_bell();
  // A rank that gave up had arrived, too, but its part may be gone.
  if (all_arrived(epoch)) return throw_if_aborted(label);
  if (spin_seconds_ > 0) {
    const double end = now_seconds() + spin_seconds_;
    do {
      for (int i = 0; i < 64; ++i) {
        if (all_arrived(epoch)) return throw_if_aborted(label);
        pause_briefly();
      }
    } while (now_seconds() < end);
  }
  sleep_until_arrived(epoch, label, extra_seconds);
}

void NodeAllReduce::sleep_until_arrived(std::uint32_t epoch, std::string_view label,
                                        double extra_seconds) {
  const double start = now_seconds();
  bool warned = false;
  while (true) {
    control_.sleepers.fetch_add(1);
    const std::uint32_t bell = control_.bell.load();
    const bool come = all_arrived(epoch);
    if (!come && control_.aborted.load() == 0) {
      const timespec timeout{0, 50'000'000};
      futex(control_.bell, FUTEX_WAIT, bell, &timeout);
    }
    control_.sleepers.fetch_sub(1);
    throw_if_aborted(label);
    if (come || all_arrived(epoch)) return;
    if (watch_) watch_(label);
    const double waited = now_seconds() - start;
    const double limit = deadlines_.limit_seconds() + extra_seconds;
    if (waited > limit) throw_stall(epoch, label, limit);
    if (waited > deadlines_.warn_seconds && !warned) {
      log::warning("rank {} has waited {} at {} for rank {}", name_of_rank(rank_),
                   format_seconds(waited), label, missing(epoch));
      warned = true;
    }
  }
}

void NodeAllReduce::ring_bell() {
  control_.bell.fetch_add(1);
  futex(control_.bell, FUTEX_WAKE, INT32_MAX, nullptr);
}

void NodeAllReduce::throw_if_aborted(std::string_view label) const {
  const std::uint32_t by = control_.aborted.load();
  if (by == 0) return;
  throw Error(ErrorKind::peer_lost,
              fmt::format("rank {} gave up", name_of_rank(static_cast<int>(by) - 1)),
              fmt::format("while waiting at {}", label), "see that rank's error")
      .on_rank(name_of_rank(rank_));
}

std::string NodeAllReduce::missing(std::uint32_t epoch) const {
  std::string names;
  for (int r = 0; r < size_; ++r) {
    const std::uint32_t seen = control_.arrived[static_cast<std::size_t>(r)].epoch.load();
    if (static_cast<std::int32_t>(seen - epoch) < 0) {
      names += (names.empty() ? "" : ", ") + std::to_string(name_of_rank(r));
    }
  }
  return names;
}

void NodeAllReduce::throw_stall(std::uint32_t epoch, std::string_view label,
                                double abort_seconds) const {
  throw Error(ErrorKind::stall,
              fmt::format("rank {} did not come within {:g} s", missing(epoch), abort_seconds),
              std::string(label), "see what that rank was doing")
      .on_rank(name_of_rank(rank_));
}

void NodeAllReduce::all_reduce(std::span<std::byte* const> parts, std::size_t count, DType type,
                               std::string_view label) {
  barrier(label);
  sum_slice(parts, parts.size(), count, type);
  barrier(label);
}

void NodeAllReduce::reduce_to_first(std::span<std::byte* const> parts, std::size_t count,
                                    DType type, std::string_view label) {
  barrier(label);
  sum_slice(parts, 1, count, type);
  barrier(label);
}

void NodeAllReduce::copy_from_first(std::span<std::byte* const> parts, std::size_t bytes,
                                    std::string_view label) {
  barrier(label, 2 * kLeaderSeconds);
  const auto mine = static_cast<std::size_t>(rank_);
  if (mine != 0) std::memcpy(parts[mine], parts[0], bytes);
  barrier(label);
}

void NodeAllReduce::sum_slice(std::span<std::byte* const> parts, std::size_t written,
                              std::size_t count, DType type) const {
  const std::size_t bytes = size_of(type);
  sum_parts(parts, written, slice_begin(count, bytes, rank_, size_),
            slice_begin(count, bytes, rank_ + 1, size_), type);
}

void NodeAllReduce::abort() noexcept {
  std::uint32_t none = 0;
  control_.aborted.compare_exchange_strong(none, static_cast<std::uint32_t>(rank_) + 1);
  ring_bell();
}

NodeGroups find_nodes(Communicator& all) {
  NodeCard mine{.node = find_node(all.rank())};
  sched_getaffinity(0, sizeof mine.cpus, &mine.cpus);
  std::vector<NodeCard> cards(static_cast<std::size_t>(all.size()));
  all.all_gather(&mine, sizeof mine, cards.data());

  NodeGroups groups;
  std::map<std::uint64_t, int> leaders;
  cpu_set_t cpus{};
  for (int rank = 0; rank < all.size(); ++rank) {
    const NodeCard& card = cards[static_cast<std::size_t>(rank)];
    if (leaders.emplace(card.node, rank).second) groups.leaders.push_back(rank);
    if (card.node != mine.node) continue;
    groups.mine.push_back(rank);
    CPU_OR(&cpus, &cpus, &card.cpus);
  }
  groups.has_cpu_each = static_cast<std::size_t>(CPU_COUNT(&cpus)) >= groups.mine.size();
  return groups;
}

}  // namespace paceline
