#include "tests/support/host_cuda/streams.h"

#include <algorithm>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "tests/support/order_seed.h"

namespace paceline::cuda {

namespace {

thread_local int t_works = 0;  // whether this thread carries a stream's work

// Apart, as the sanitizer takes one thread for several.
__attribute__((no_sanitize("thread"), noinline)) int works(int more) {
  return t_works += more;
}

}  // namespace

HostStreams::HostStreams(const HostOptions& options) : options_(options), random_(order_seed()) {}

HostStreams::~HostStreams() {
  try {
    finish_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the emulated GPU: %s\n", error.what());
  }
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (const auto& stream : streams_) {
    if (stream->thread.joinable()) stream->thread.join();
  }
}

HostStreams::Lock HostStreams::lock() const {
  if (works(0) > 0) throw Error(ErrorKind::internal, "a stream's host function calls CUDA");
  return Lock(mutex_);
}

HostStream& HostStreams::make(const FakeStream& base, void* owner, StreamPriority priority) {
  const Lock guard = lock();
  streams_.push_back(std::make_unique<HostStream>());
  HostStream& stream = *streams_.back();
  static_cast<FakeStream&>(stream) = base;
  stream.owner = owner;
  stream.priority = priority;
  if (options_.threads) stream.thread = std::thread([this, &stream] { drive(stream); });
  return stream;
}

void HostStreams::destroy(HostStream& stream) noexcept {
  const std::lock_guard guard(mutex_);
  stream.destroyed = true;
}

void HostStreams::add(HostStream& stream, HostOp op) {
  Lock guard = lock();
  push(guard, stream, std::move(op));
}

void HostStreams::push(Lock& lock, HostStream& stream, HostOp op) {
  if (stream.destroyed) throw Error(ErrorKind::internal, "queues on a stream that is destroyed");
  HostQueued queued{std::make_unique<HostTask>(), std::exchange(op.kept, {}), op.waits, op.records,
                    op.kernels};
  queued.task->work = [this, op = std::move(op)](HostBlock& block) { run(op, block); };
  happens_before(queued.task.get());
  stream.queue.push_back(std::move(queued));
  changed_.notify_all();
  while (stream.queue.size() > options_.most_queued) step(lock, stream);
}

Recording HostStreams::record(Lock& lock, HostStream& stream) {
  const Recording recording = &recordings_.emplace_back(Recorded{.stream = &stream});
  HostOp op;
  op.work = [at = recording](HostBlock&) { at->time = now_seconds(); };
  op.records = {recording};
  push(lock, stream, std::move(op));
  return recording;
}

Recording HostStreams::record(HostStream& stream) {
  Lock guard = lock();
  return record(guard, stream);
}

Recording HostStreams::announce(HostStream& stream) {
  const Lock guard = lock();
  return &recordings_.emplace_back(Recorded{.stream = &stream, .by_graph = true});
}

void HostStreams::wait(HostStream& stream, Recording recording) {
  if (!recording) return;  // an event that was never recorded
  Lock guard = lock();
  HostOp op;
  op.waits = recording;
  push(guard, stream, std::move(op));
}

bool HostStreams::done(Recording recording) {
  if (!recording) return true;
  Lock guard = lock();
  check(recording);
  if (!recording->done && !recording->stream->busy && !options_.threads) {
    step(guard, *recording->stream);
  }
  if (error_) std::rethrow_exception(error_);
  if (recording->done) happens_after(recording);
  return recording->done;
}

void HostStreams::finish(Lock& lock, Recording recording) {
  while (!recording->done) step(lock, *recording->stream);
  happens_after(recording);
}

void HostStreams::check(Recording recording) {
  if (recording->done || !recording->by_graph) return;
  throw Error(ErrorKind::internal, "asks for an event that a graph has yet to record");
}

void HostStreams::finish(Recording recording) {
  if (!recording) return;
  Lock guard = lock();
  check(recording);
  finish(guard, recording);
  if (error_) std::rethrow_exception(error_);
}

void HostStreams::finish_all() {
  Lock guard = lock();
  std::vector<Recording> ends;
  for (const auto& stream : streams_) {
    const bool destroyed = std::exchange(stream->destroyed, false);
    ends.push_back(record(guard, *stream));
    stream->destroyed = destroyed;
  }
  std::shuffle(ends.begin(), ends.end(), random_);
  for (const Recording end : ends) finish(guard, end);
  if (error_) std::rethrow_exception(error_);
}

double HostStreams::seconds_between(Recording begin, Recording end) {
  const Lock guard = lock();
  if (!begin || !end || !begin->done || !end->done) {
    throw Error(ErrorKind::internal, "the time of an event that is not reached");
  }
  return end->time - begin->time;
}

std::uint64_t HostStreams::random() {
  const std::lock_guard guard(mutex_);
  return random_();
}

bool HostStreams::is_held_up(const HostStream& stream) {
  const Recording waits = stream.queue.front().waits;
  return waits && !waits->done;
}

// Does one thing that the stream needs next, or waits until another thread has.
void HostStreams::step(Lock& lock, HostStream& stream) {
  HostStream* next = &stream;
  while (!next->busy && !next->queue.empty() && is_held_up(*next)) {
    next = next->queue.front().waits->stream;
  }
  if (options_.threads || next->busy || next->queue.empty()) {
    changed_.wait(lock);
  } else {
    run_front(lock, *next);
  }
}

void HostStreams::run_front(Lock& lock, HostStream& stream) {
  HostQueued queued = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.busy = true;
  lock.unlock();
  works(1);
  void* const token = queued.task.get();
  stream.place.run(std::move(queued.task), token);
  works(-1);
  lock.lock();
  if (options_.counts) options_.counts->kernels += queued.kernels;
  for (const Recording recording : queued.records) recording->done = true;
  stream.busy = false;
  changed_.notify_all();
}

// An error is told to whoever waits next.
void HostStreams::run(const HostOp& op, HostBlock& block) noexcept {
  if (op.waits) happens_after(op.waits);
  try {
    if (op.work) op.work(block);
  } catch (...) {
    const std::lock_guard guard(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  for (const Recording recording : op.records) happens_before(recording);
}

void HostStreams::drive(HostStream& stream) {
  Lock guard(mutex_);
  while (true) {
    changed_.wait(guard, [&] { return stop_ || (!stream.queue.empty() && !is_held_up(stream)); });
    if (stop_) return;
    run_front(guard, stream);
  }
}

}  // namespace paceline::cuda
