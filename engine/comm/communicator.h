// How replicas communicate: one Communicator per replica. Calls are collective: every rank makes
// the same calls in the same order. Every wait has a deadline, and throws stall past it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/lane.h"
#include "engine/core/memory.h"

namespace paceline {

// How long a rank waits for others before it warns, and before it aborts. Until the first step has
// ended, start_seconds replaces abort_seconds: ranks choose algorithms and load data at different
// speeds.
struct Deadlines {
  double warn_seconds = 30;
  double abort_seconds = 120;
  double start_seconds = 600;
  double first_sum_seconds = 30;                          // for one bucket, before the first step
  std::shared_ptr<const std::atomic<bool>> settled = {};  // true after the first step; null: always

  double limit_seconds() const {
    return settled && !*settled ? std::max(abort_seconds, start_seconds) : abort_seconds;
  }
};

// What a replica reports beside its collectives. Labels are literals of at most 31 bytes.
class Supervision {
 public:
  virtual ~Supervision() = default;

  // Sums queued on a GPU stream cannot throw. After an abort they end early, without a result. This
  // throws the error that ended the communicator, if any. Cheap; call it once per step.
  virtual void throw_if_ended() {}
  // The host starts (ends) a wait for such work. A wait past the deadline aborts the communicator,
  // and throw_if_ended() then throws stall. See StreamWait.
  virtual void begin_wait(std::string_view label) noexcept { static_cast<void>(label); }
  virtual void end_wait() noexcept {}

  // This replica starts to wait for something other than a rank, i.e. its next batch; an empty
  // label ends the wait. Such waits are recorded and watched too. See OwnWait.
  virtual void note_own_wait(std::string_view label) noexcept { static_cast<void>(label); }

  // The step that starts, from 1.
  virtual void note_step(std::uint64_t step) noexcept { static_cast<void>(step); }
  // The step at which the run ends, unless a goal ends it before.
  virtual void note_last_step(std::uint64_t step) noexcept { static_cast<void>(step); }
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Memory in which this backend reduces fastest, for the gradient arena (ring: memory that the
  // ranks of a node share; nccl: a registered buffer). Empty: use the device's memory. Collective,
  // at most once. Valid as long as the communicator.
  virtual Memory allocate(std::size_t bytes) = 0;

  // Whether all_reduce accepts memory of this kind. If not, staged/ wraps the backend.
  virtual bool reduces(MemoryKind kind) const { return kind != MemoryKind::device; }

  // Whether sums of device memory are calls of the host, which need the lane of a host's thread,
  // not of a stream.
  virtual bool sums_from_host() const { return false; }

  // Whether all_reduce may be captured in a graph. Equal on all ranks.
  virtual bool can_sum_in_graphs() const { return true; }

  // Queues on `lane` the sum over ranks of `count` elements at `data`, in place. Every rank gets
  // the same bits. `label` (a literal) names the sum in errors: "bucket 3".
  virtual void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                          std::string_view label) = 0;

  // The control plane: small, synchronous, in host memory.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void all_gather(const void* mine, std::size_t bytes, void* all) = 0;
  virtual void barrier() = 0;

  // Receives this replica's steps and waits. Wrappers return that of the wrapped communicator.
  virtual Supervision& supervision() {
    static Supervision nobody;
    return nobody;
  }

  // Ends the waits of every rank. From any thread, at any time.
  virtual void abort(std::string_view why) noexcept = 0;
};

// Scope of a host's wait for GPU work that includes sums. Call throw_if_ended() afterwards.
class StreamWait {
 public:
  StreamWait(Communicator& communicator, std::string_view label)
      : supervision_(communicator.supervision()) {
    supervision_.begin_wait(label);
  }
  ~StreamWait() { supervision_.end_wait(); }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

 private:
  Supervision& supervision_;
};

class OwnWait {
 public:
  OwnWait(Communicator& communicator, std::string_view label)
      : supervision_(communicator.supervision()) {
    supervision_.note_own_wait(label);
  }
  ~OwnWait() { supervision_.note_own_wait({}); }
  OwnWait(const OwnWait&) = delete;
  OwnWait& operator=(const OwnWait&) = delete;

 private:
  Supervision& supervision_;
};

// Sums doubles over ranks in rank order, for losses and counts.
void sum_over_ranks(Communicator& communicator, std::span<double> values);

// The texts of all ranks, in rank order, on every rank. Collective.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine);

// The members of a communicator among processes.

struct RankGroup {
  int rank = 0;            // this process's index among the members; -1: it is not one
  std::vector<int> names;  // of each member: its rank number in the world, for error messages

  int size() const { return static_cast<int>(names.size()); }
  int name() const { return names[static_cast<std::size_t>(rank)]; }
  // Member m is named m * step.
  static RankGroup numbered(int rank, int size, int step = 1) {
    RankGroup group{rank, {}};
    for (int member = 0; member < size; ++member) group.names.push_back(member * step);
    return group;
  }
};

// The group of `members` of `all`, given by their indices there.
inline RankGroup subgroup(const RankGroup& all, const std::vector<int>& members) {
  RankGroup group{-1, {}};
  for (const int member : members) {
    if (member == all.rank) group.rank = group.size();
    group.names.push_back(all.names[static_cast<std::size_t>(member)]);
  }
  return group;
}

}  // namespace paceline
