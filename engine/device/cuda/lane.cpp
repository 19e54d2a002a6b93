#include "engine/device/cuda/lane.h"

#include <utility>

namespace paceline::cuda {

StreamLane::StreamLane(Runtime& runtime) : runtime_(runtime), stream_(runtime.make_stream()) {
  for (Event& event : events_) event = runtime_.make_event();
}

StreamLane::~StreamLane() {
  runtime_.destroy_stream(stream_);
  for (const Event event : events_) runtime_.destroy_event(event);
}

void StreamLane::run(void* data) {
  auto* queued = static_cast<Queued*>(data);
  try {
    queued->task();
  } catch (...) {
    std::lock_guard lock(queued->lane->mutex_);
    if (!queued->lane->error_) queued->lane->error_ = std::current_exception();
  }
}

void StreamLane::submit(HostTask task) {
  if (submitted_ > 0 && submitted_ % kTasks == 0) runtime_.synchronize_stream(stream_);
  Queued& queued = tasks_[submitted_++ % kTasks];
  queued = {this, task};
  runtime_.host_task(&StreamLane::run, &queued, stream_);
}

Marker StreamLane::mark() {
  const Marker marker{this, marks_++};
  runtime_.record(event_of(marker), stream_);
  return marker;
}

void StreamLane::after(Marker marker) {
  if (!marker.lane || marker.lane == this) return;
  if (const auto* other = dynamic_cast<const StreamLane*>(marker.lane)) {
    runtime_.wait(stream_, other->event_of(marker));
  } else {
    marker.lane->wait_for(marker);
  }
}

bool StreamLane::reached(Marker marker) const {
  return runtime_.done(event_of(marker));
}

void StreamLane::wait_for(Marker marker) const {
  runtime_.synchronize_event(event_of(marker));
}

void StreamLane::drain() {
  runtime_.synchronize_stream(stream_);
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace paceline::cuda
