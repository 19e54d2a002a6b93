#include "engine/comm/wrappers/recorded/recorded_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/comm/checks/stall_monitor.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/core/error.h"

namespace paceline {

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<Communicator> inner,
                                           std::shared_ptr<Recording> recording,
                                           std::size_t replica)
    : inner_(std::move(inner)),
      recording_(std::move(recording)),
      ring_(*recording_->rings[replica]) {}

void RecordedCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                      std::string_view label) {
  if (size() == 1) return inner_->all_reduce(data, count, type, lane, label);
  const std::uint64_t sequence = ring_.queue(FlightKind::all_reduce, label, count * size_of(type));
  if (lane.native() != nullptr) {
    return all_reduce_on_stream(data, count, type, lane, label, sequence);
  }
  lane.submit([this, sequence] { enter(sequence); });
  inner_->all_reduce(data, count, type, lane, label);
  // Behind a sum that throws, this is dropped: the ring says that the sum did not end.
  lane.submit([this, sequence] { ring_.leave(sequence); });
}

void RecordedCommunicator::all_reduce_on_stream(void* data, std::size_t count, DType type,
                                                Lane& lane, std::string_view label,
                                                std::uint64_t sequence) {
  ring_.hand_over(sequence);
  note_progress();
  inner_->all_reduce(data, count, type, lane, label);
  note_ends(lane);
  const Marker end = lane.mark();         // always: a captured step has the same markers each time
  if (pendings_ == kMostPending) return;  // far ahead of the stream: its end is not seen
  pending_[(first_pending_ + pendings_++) % kMostPending] = {sequence, end};
}

void RecordedCommunicator::note_ends(const Lane& lane) {
  while (pendings_ > 0 && lane.reached(pending_[first_pending_].end)) {
    ring_.note_end(pending_[first_pending_].sequence);
    first_pending_ = (first_pending_ + 1) % kMostPending;
    --pendings_;
  }
}

void RecordedCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  const std::uint64_t sequence = ring_.queue(FlightKind::broadcast, "broadcast", bytes);
  enter(sequence);
  inner_->broadcast(data, bytes, root);
  ring_.leave(sequence);
}

void RecordedCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  const std::uint64_t sequence = ring_.queue(FlightKind::all_gather, "all-gather", bytes);
  enter(sequence);
  inner_->all_gather(mine, bytes, all);
  ring_.leave(sequence);
}

void RecordedCommunicator::barrier() {
  const std::uint64_t sequence = ring_.queue(FlightKind::barrier, "barrier", 0);
  enter(sequence);
  inner_->barrier();
  ring_.leave(sequence);
}

void RecordedCommunicator::begin_wait(std::string_view label) noexcept {
  ring_.begin_wait(label);
  inner_->supervision().begin_wait(label);
}

void RecordedCommunicator::end_wait() noexcept {
  inner_->supervision().end_wait();
  ring_.end_wait();
}

void RecordedCommunicator::note_own_wait(std::string_view label) noexcept {
  if (label.empty()) {
    ring_.end_wait();
  } else {
    ring_.begin_wait(label);
  }
}

void RecordedCommunicator::note_step(std::uint64_t step) noexcept {
  ring_.note_step(step);
  if (step > 1) recording_->settled.store(true, std::memory_order_relaxed);
  inner_->supervision().note_step(step);
}

void RecordedCommunicator::note_last_step(std::uint64_t step) noexcept {
  ring_.note_last_step(step);
  inner_->supervision().note_last_step(step);
}

void RecordedCommunicator::abort(std::string_view why) noexcept {
  if (recording_->stall_monitor != nullptr) {
    try {
      recording_->stall_monitor->expect_end(Error(ErrorKind::peer_lost, std::string(why)));
    } catch (const std::exception&) {
      // Without memory for the words; the deadline still ends this process.
    }
  }
  inner_->abort(why);
}

void RecordedCommunicator::enter(std::uint64_t sequence) noexcept {
  ring_.enter(sequence);
  note_progress();
}

// The process is as far as the last of its replicas.
void RecordedCommunicator::note_progress() noexcept {
  if (recording_->control == nullptr) return;
  std::uint64_t least = ring_.entered();
  for (const auto& ring : recording_->rings) least = std::min(least, ring->entered());
  recording_->control->note_progress(least);
}

}  // namespace paceline
