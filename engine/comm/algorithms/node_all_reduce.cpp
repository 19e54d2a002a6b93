#include "engine/comm/algorithms/node_all_reduce.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

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

}  // namespace

NodeAllReduce::NodeAllReduce(NodeAllReduceState& control, int rank, int size, Deadlines deadlines,
                             double spin_microseconds, std::vector<int> names)
    : control_(control),
      rank_(rank),
      size_(size),
      deadlines_(deadlines),
      spin_seconds_(spin_microseconds * 1e-6),
      names_(std::move(names)) {
  if (size > kMaxTeam) {
    throw Error(ErrorKind::usage, fmt::format("{} ranks on one node are too many", size), "",
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

}  // namespace paceline
