// Sums gradients over replicas bucket by bucket, each as soon as backward has finished it.
//
// A bucket is a contiguous range of the gradient arena, filled up to the cap without splitting
// tensors. The gradients that are ready last form a separate bucket of at most the last cap,
// because no computation is left to hide it.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/clock.h"
#include "engine/plan/plan.h"
#include "engine/train/trace/trace_file.h"

namespace paceline {

struct Bucket {
  std::size_t begin = 0, end = 0;  // elements in the arena
  int operation = 0;               // ready after backward of this operation
  std::string label;               // "bucket 3"
};

// Throws internal for a plan without parameters.
std::vector<Bucket> make_buckets(const Plan& plan, double cap_mb, double last_cap_mb);

// For a single replica: one bucket, which is not summed.
std::vector<Bucket> one_bucket(const Plan& plan);

class Reducer {
 public:
  // `gradients` is the arena. The lanes and the communicator outlive the reducer. With one replica
  // it queues nothing.
  Reducer(std::vector<Bucket> buckets, DType real, std::byte* gradients, Communicator& communicator,
          Lane& compute, Lane& comm);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // Queues the all-reduce of bucket `index`, after everything queued on the compute lane so far.
  void start(std::size_t index);
  // Makes the compute lane wait for bucket `index`. Blocks on an inline compute lane, and throws
  // the error of the communication lane.
  void finish(std::size_t index);

  // Records each all-reduce in `ring` too, with its number in the run, which is equal on all ranks.
  void trace(TraceRing* ring) { trace_ = ring; }
  void anchor();  // see PhaseClock::anchor(), for the communication lane

  // Seconds of all-reduces on the communication lane, hidden or not. Waits for the lane if the lane
  // itself measures time.
  double busy_seconds();

 private:
  std::vector<Bucket> buckets_;
  DType real_;
  std::byte* gradients_;
  Communicator& communicator_;
  Lane& compute_;
  Lane& comm_;
  std::vector<Marker> done_;
  struct TimeSpan {
    Marker begin, end;
    std::size_t bucket;
  };
  void note(std::size_t bucket, double begin, double end);
  void note_spans(std::size_t keep);

  std::deque<TimeSpan> spans_;  // not yet summed, for lanes that measure time
  double started_ = 0;          // used only on the communication lane
  double busy_seconds_ = 0;     // the same; read after the lane is drained
  TraceRing* trace_ = nullptr;
  std::uint64_t sequence_ = 0;  // see started_
  LaneTimeline timeline_;
};

}  // namespace paceline
