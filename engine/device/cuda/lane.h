// A lane on a CUDA stream.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/core/lane.h"
#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// The markers of a graph on all its lanes, in order.
struct GraphMarks {
  Graph* graph = nullptr;  // null: being captured
  std::size_t most = 0;    // number of markers at capture
  std::size_t count = 0;   // number of markers given so far
};

class StreamLane final : public Lane {
 public:
  // `runtime` outlives the lane.
  explicit StreamLane(Runtime& runtime, StreamPriority priority = StreamPriority::normal);
  ~StreamLane() override;
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;

  void submit(HostTask task) override;
  Marker mark() override;
  // For a marker of another stream, the device waits. For a marker of a host lane, the caller
  // waits, because a stream cannot wait for the host without blocking.
  void after(Marker marker) override;
  void follow(Lane& other) override;  // inside a graph: without a marker recorded by its launches
  bool reached(Marker marker) const override;
  void drain() override;
  bool is_inline() const override { return false; }
  void wait_for(Marker marker) const override;
  bool keeps_time() const override { return true; }
  double seconds_between(Marker begin, Marker end) const override {
    return runtime_.seconds_between(event_at(begin), event_at(end));
  }
  void* native() override { return stream_; }
  bool replays() const override { return marks_in_ != nullptr && marks_in_->graph != nullptr; }

  Stream stream() const { return stream_; }

  // From join() to leave(), a graph is captured on this lane or its next launch is prepared.
  // Markers belong to that launch, none of them is reached, and waits and host work are not
  // allowed. Later, `over` answers for them, which the caller records behind the launch: what CUDA
  // answers for an event that a graph has yet to record is not documented. Null: ask for none.
  void join(GraphMarks& marks, Event over = nullptr);
  void leave() noexcept { marks_in_ = nullptr; }
  bool in_graph() const { return marks_in_ != nullptr; }
  bool gave_markers() const { return marks_ > first_in_graph_; }  // since join()
  Event take_event();                                             // whose recording is the caller's

 private:
  // A marker whose event was recorded again counts as reached together with the newer one.
  static constexpr std::size_t kEvents = 4096, kTasks = 256;
  Event event_at(Marker marker) const { return events_[marker.position % kEvents]; }
  Event asked_at(Marker marker) const { return asked_[marker.position % kEvents]; }
  struct Queued {
    StreamLane* lane;
    HostTask task;
  };
  static void run(void* queued);
  Event fork();
  Event fork_event(Marker marker) const;
  void refuse_in_graph(const char* what) const;

  Runtime& runtime_;
  Stream stream_;
  std::array<Event, kEvents> events_{};  // all created by the first mark, if there is one
  std::array<Event, kEvents> asked_{};   // which answer for them
  std::uint64_t marks_ = 0;
  GraphMarks* marks_in_ = nullptr;
  Event over_ = nullptr;
  std::uint64_t first_in_graph_ = 0;  // number of a marker
  // Events that other lanes wait for during a capture (`forked_` of them are in use), and events of
  // the markers since the first.
  std::vector<Event> forks_, marker_forks_;
  std::size_t forked_ = 0;
  std::array<Queued, kTasks> tasks_;
  std::uint64_t submitted_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace paceline::cuda
