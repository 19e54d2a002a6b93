// How replicas talk. One Communicator a replica; calls are collective: every rank makes the same
// calls in the same order. Every wait has a deadline and, past it, throws stall.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/core/dtype.h"
#include "engine/core/lane.h"
#include "engine/core/memory.h"

namespace paceline {

// How long a rank waits for others before it says so, and before it ends. Until the first step has
// ended start_seconds holds: algorithms are chosen, and ranks load their data at unlike speeds.
struct Deadlines {
  double warn_seconds = 30;
  double abort_seconds = 120;
  double start_seconds = 600;
  double first_sum_seconds = 30;                          // of one bucket, before the first step
  std::shared_ptr<const std::atomic<bool>> settled = {};  // the first step has ended; null: it has

  double limit_seconds() const {
    return settled && !*settled ? std::max(abort_seconds, start_seconds) : abort_seconds;
  }
};

// What a replica tells beside its collectives; labels are literals of at most 31 bytes.
class Supervision {
 public:
  virtual ~Supervision() = default;

  // Sums queued on a GPU's stream cannot throw: after an abort they end early, with no sum. Throws
  // what ended the communicator, if something has. Cheap: once a step.
  virtual void throw_if_ended() {}
  // The host begins to wait for such work, or has ended to: a wait that outlasts the deadline is
  // ended by an abort, and throw_if_ended() then throws stall. See StreamWait.
  virtual void begin_wait(std::string_view label) noexcept { static_cast<void>(label); }
  virtual void end_wait() noexcept {}

  // This replica begins to wait for what no other gives it, its next batch; an empty label: it goes
  // on. Such a wait is recorded and watched, too. See OwnWait.
  virtual void note_own_wait(std::string_view label) noexcept { static_cast<void>(label); }

  // The step that begins, from 1.
  virtual void note_step(std::uint64_t step) noexcept { static_cast<void>(step); }
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Memory in which this backend reduces fastest (mpi: the node's shared window; nccl: a
  // registered buffer), for the gradient arena. Empty: none is better than the device's own.
  // Collective, once. Valid as long as the communicator.
  virtual Memory allocate(std::size_t bytes) = 0;

  // Whether all_reduce takes data in memory of this kind; where not, staged/ goes around it.
  virtual bool reduces(MemoryKind kind) const { return kind != MemoryKind::device; }

  // Queues on `lane` the sum over ranks of `count` elements at `data`, in place, the same bits on
  // every rank. f32 or f64. `label` (a literal) names it in errors: "bucket 3".
  virtual void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                          std::string_view label) = 0;

  // The control plane: small, synchronous, on host memory.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void all_gather(const void* mine, std::size_t bytes, void* all) = 0;
  virtual void barrier() = 0;

  // Who is told of this replica's steps and waits. A wrapper hands on that of what it wraps.
  virtual Supervision& supervision() {
    static Supervision nobody;
    return nobody;
  }

  // Ends every rank's waits, now or soon. From any thread, any time.
  virtual void abort(std::string_view why) noexcept = 0;
};

// Around a wait of the host for work on a GPU's stream in which sums are queued; throw_if_ended()
// comes after it.
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

// Sums doubles over ranks in rank order; for losses and counts.
void sum_over_ranks(Communicator& communicator, std::span<double> values);

}  // namespace paceline
