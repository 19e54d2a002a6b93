#include "engine/device/cuda/lane.h"

#include <utility>

#include "engine/core/error.h"

namespace paceline::cuda {

StreamLane::StreamLane(Runtime& runtime, StreamPriority priority)
    : runtime_(runtime), stream_(runtime.make_stream(priority)) {}

// A stream that is destroyed goes on with what it has, and that may be work on the host of here.
StreamLane::~StreamLane() {
  if (submitted_ > 0) {
    try {
      runtime_.synchronize_stream(stream_);
    } catch (const Error&) {  // whoever waited for the lane heard of it; nobody does now
    }
  }
  runtime_.destroy_stream(stream_);
  for (const Event event : events_) {
    if (event) runtime_.destroy_event(event);
  }
  for (const Event event : forks_) runtime_.destroy_event(event);
}

void StreamLane::join(GraphMarks& marks, Event over) {
  marks_in_ = &marks;
  over_ = over;
  first_in_graph_ = marks_;
  marker_forks_.clear();
  forked_ = 0;
}

void StreamLane::refuse_in_graph(const char* what) const {
  if (!in_graph()) return;
  throw internal_error(std::string(what) + " within a step that is one graph");
}

Event StreamLane::fork() {
  if (forked_ == forks_.size()) forks_.push_back(runtime_.make_event());
  const Event event = forks_[forked_++];
  runtime_.record(event, stream_);
  return event;
}

Event StreamLane::fork_event(Marker marker) const {
  if (!in_graph() || marker.position < first_in_graph_) {
    throw internal_error("a captured stream waits for what came before its capture");
  }
  return marker_forks_[static_cast<std::size_t>(marker.position - first_in_graph_)];
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
  refuse_in_graph("work on the host");
  if (submitted_ > 0 && submitted_ % kTasks == 0) runtime_.synchronize_stream(stream_);
  Queued& queued = tasks_[submitted_++ % kTasks];
  queued = {this, task};
  runtime_.host_task(&StreamLane::run, &queued, stream_);
}

Event StreamLane::take_event() {
  if (marks_ == 0) {
    for (Event& event : events_) event = event ? event : runtime_.make_event();
  }
  return events_[marks_++ % kEvents];
}

Marker StreamLane::mark() {
  const Marker marker{this, marks_};
  const Event event = take_event();
  asked_[marker.position % kEvents] = in_graph() && over_ ? over_ : event;
  if (!in_graph()) {
    runtime_.record(event, stream_);
    return marker;
  }
  const std::size_t index = marks_in_->count++;
  if (marks_in_->graph) {
    if (index < marks_in_->most) marks_in_->graph->set_mark(index, event);
    return marker;
  }
  runtime_.record_in_graph(event, stream_);
  marker_forks_.push_back(fork());
  return marker;
}

void StreamLane::after(Marker marker) {
  if (!marker.lane || marker.lane == this) return;
  const auto* other = dynamic_cast<const StreamLane*>(marker.lane);
  if (!other) {
    refuse_in_graph("a wait for the host");
    marker.lane->wait_for(marker);
  } else if (!in_graph()) {
    runtime_.wait(stream_, other->asked_at(marker));
  } else if (!replays()) {
    runtime_.wait(stream_, other->fork_event(marker));
  }
}

void StreamLane::follow(Lane& other) {
  auto* stream = dynamic_cast<StreamLane*>(&other);
  if (!stream || !in_graph() || !stream->in_graph()) return after(other.mark());
  if (!replays()) runtime_.wait(stream_, stream->fork());
}

// CUDA answers no such question to a thread that captures.
bool StreamLane::reached(Marker marker) const {
  if (in_graph() && (!replays() || marker.position >= first_in_graph_)) return false;
  return runtime_.done(asked_at(marker));
}

void StreamLane::wait_for(Marker marker) const {
  refuse_in_graph("a wait of the host");
  runtime_.synchronize_event(asked_at(marker));
}

void StreamLane::drain() {
  refuse_in_graph("a wait of the host");
  runtime_.synchronize_stream(stream_);
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace paceline::cuda
