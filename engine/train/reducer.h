// Sums gradients over replicas, bucket by bucket, each as soon as backward has finished it.
//
// A bucket is a contiguous range of the gradient arena: it is filled up to the cap, tensors are not
// split, and what is ready last goes into a bucket of its own of at most the last cap, because
// nothing is left to hide it behind.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/trace.h"
#include "engine/plan/plan.h"
#include "engine/train/trace/lane_timeline.h"

namespace paceline {

struct Bucket {
  std::size_t begin = 0, end = 0;  // elements of the arena
  int operation = 0;               // ready after backward of this operation
  std::string label;               // "bucket 3"
};

// Throws internal for a plan without parameters.
std::vector<Bucket> make_buckets(const Plan& plan, double cap_mb, double last_cap_mb);

// Of a lone replica, which sums nothing: all in one.
std::vector<Bucket> one_bucket(const Plan& plan);

class Reducer {
 public:
  // `gradients` is the arena; the lanes and the communicator outlive the reducer. With one replica
  // it queues nothing.
  Reducer(std::vector<Bucket> buckets, DType real, std::byte* gradients, Communicator& communicator,
          Lane& compute, Lane& comm);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // Queues the all-reduce of bucket `index` behind what the compute lane has been given so far.
  void start(std::size_t index);
  // Makes the compute lane wait for it. On an inline compute lane this blocks, and throws what the
  // communication lane threw.
  void finish(std::size_t index);

  // Notes each all-reduce, too, with its number in the run, which is the same on every rank.
  void trace(TraceRing* ring) { trace_ = ring; }
  void anchor();  // as PhaseClock::anchor(), of the communication lane

  // Seconds that all-reduces took on the communication lane, hidden or not. Waits for a lane that
  // keeps time itself.
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

  std::deque<TimeSpan> spans_;  // of a lane that keeps time: not yet added up
  double started_ = 0;          // written and read on the communication lane only
  double busy_seconds_ = 0;     // the same; read after the lane is drained
  TraceRing* trace_ = nullptr;
  std::uint64_t sequence_ = 0;  // as started_
  LaneTimeline timeline_;
};

}  // namespace paceline
