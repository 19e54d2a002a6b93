#include "engine/train/reducer.h"

#include <fmt/format.h>

#include "engine/core/bucket_cuts.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kSpansAhead = 2;  // steps whose end the host does not wait for

std::size_t count_elements(double megabytes, DType real) {
  return static_cast<std::size_t>(megabytes * 1048576.0) / size_of(real);
}

}  // namespace

std::vector<Bucket> make_buckets(const Plan& plan, double cap_mb, double last_cap_mb) {
  if (plan.ready.empty()) throw internal_error("a plan without parameters");
  std::vector<std::size_t> ready;
  for (const ReadyPoint& point : plan.ready) ready.push_back(point.elements);
  std::vector<Bucket> buckets;
  std::size_t begin = 0;
  for (const std::size_t last : bucket_cuts(ready, count_elements(cap_mb, plan.real),
                                            count_elements(last_cap_mb, plan.real))) {
    buckets.push_back(
        {begin, ready[last], plan.ready[last].operation, fmt::format("bucket {}", buckets.size())});
    begin = ready[last];
  }
  return buckets;
}

std::vector<Bucket> one_bucket(const Plan& plan) {
  if (plan.ready.empty()) throw internal_error("a plan without parameters");
  return {{0, plan.ready.back().elements, plan.ready.back().operation, "bucket 0"}};
}

Reducer::Reducer(std::vector<Bucket> buckets, DType real, std::byte* gradients,
                 Communicator& communicator, Lane& compute, Lane& comm)
    : buckets_(std::move(buckets)),
      real_(real),
      gradients_(gradients),
      communicator_(communicator),
      compute_(compute),
      comm_(comm),
      done_(buckets_.size()),
      timeline_(comm) {}

void Reducer::start(std::size_t index) {
  if (communicator_.size() == 1) return;
  const Bucket& bucket = buckets_[index];
  const bool timed = comm_.keeps_time();
  comm_.follow(compute_);
  const Marker begin = timed ? comm_.mark() : Marker{};
  if (!timed) comm_.submit([this] { started_ = now_seconds(); });
  communicator_.all_reduce(gradients_ + bucket.begin * size_of(real_), bucket.end - bucket.begin,
                           real_, comm_, bucket.label);
  if (!timed) comm_.submit([this, index] { note(index, started_, now_seconds()); });
  done_[index] = comm_.mark();
  if (!timed) return;
  spans_.push_back({begin, done_[index], index});
  note_spans(kSpansAhead * buckets_.size());
}

void Reducer::note(std::size_t bucket, double begin, double end) {
  busy_seconds_ += end - begin;
  if (!trace_) return;
  const Bucket& range = buckets_[bucket];
  trace_->note(range.label, begin, end, sequence_++, (range.end - range.begin) * size_of(real_));
}

void Reducer::anchor() {
  if (!trace_ || !comm_.keeps_time()) return;
  busy_seconds();
  timeline_.anchor();
}

// All but the last `keep`, as far as they are reached.
void Reducer::note_spans(std::size_t keep) {
  while (spans_.size() > keep && comm_.reached(spans_.front().end)) {
    const TimeSpan& span = spans_.front();
    const double seconds = comm_.seconds_between(span.begin, span.end);
    const double begin = trace_ ? timeline_.time_at(span.begin) : 0;
    if (trace_) timeline_.time_at(span.end);
    note(span.bucket, begin, begin + seconds);
    spans_.pop_front();
  }
}

double Reducer::busy_seconds() {
  if (comm_.keeps_time()) comm_.drain();
  if (!spans_.empty()) comm_.wait_for(spans_.back().end);  // where another lane launches graphs
  note_spans(0);
  return busy_seconds_;
}

void Reducer::finish(std::size_t index) {
  if (communicator_.size() == 1) return;
  compute_.after(done_[index]);
  if (!comm_.native() && index + 1 == buckets_.size()) comm_.drain();
}

}  // namespace paceline
