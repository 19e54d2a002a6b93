// A lane that is a stream of the device.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/core/lane.h"
#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// The markers of a graph, of all of its lanes in the order in which they are given.
struct GraphMarks {
  Graph* graph = nullptr;  // null: it is being captured
  std::size_t most = 0;    // that it was captured with
  std::size_t count = 0;   // given so far
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
  // A marker of another stream is waited for on the device; one of a host's lane by the caller,
  // because a stream cannot wait for a host without holding it up.
  void after(Marker marker) override;
  void follow(Lane& other) override;  // within a graph: without a marker that its launches record
  bool reached(Marker marker) const override;
  void drain() override;
  bool is_inline() const override { return false; }
  void wait_for(Marker marker) const override;
  bool keeps_time() const override { return true; }
  double seconds_between(Marker begin, Marker end) const override {
    return runtime_.seconds_between(event_of(begin), event_of(end));
  }
  void* native() override { return stream_; }
  bool replays() const override { return marks_in_ != nullptr && marks_in_->graph != nullptr; }

  Stream stream() const { return stream_; }

  // Until leave(), a graph is captured on this lane or prepared for its next launch: markers are of
  // that launch, none of them is reached, and nothing may wait or run on the host.
  void join(GraphMarks& marks);
  void leave() noexcept { marks_in_ = nullptr; }
  bool in_graph() const { return marks_in_ != nullptr; }

 private:
  // A marker whose event was recorded anew since counts as reached with the newer one.
  static constexpr std::size_t kEvents = 4096, kTasks = 256;
  Event event_of(Marker marker) const { return events_[marker.position % kEvents]; }
  struct Queued {
    StreamLane* lane;
    HostTask task;
  };
  static void run(void* queued);
  Event fork();
  Event fork_of(Marker marker) const;
  void refuse_in_graph(const char* what) const;

  Runtime& runtime_;
  Stream stream_;
  std::array<Event, kEvents> events_{};  // made when they are first used
  std::uint64_t marks_ = 0;
  GraphMarks* marks_in_ = nullptr;
  std::uint64_t first_in_graph_ = 0;  // marker
  // What other lanes wait for in a capture: events of which `forked_` are in use, and those of the
  // markers since the first.
  std::vector<Event> forks_, marker_forks_;
  std::size_t forked_ = 0;
  std::array<Queued, kTasks> tasks_;
  std::uint64_t submitted_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace paceline::cuda
