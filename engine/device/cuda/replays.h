// Work that is queued again and again with the same addresses: the first times each is queued as it
// is (libraries load and choose), then captured, then replayed as a graph.
//
// A part of a step lies on the compute lane, and whoever queues it notes nothing on the way: it is
// replayed without being asked again. A whole step lies on several lanes, with markers that are
// looked at later, and the host keeps its books while it queues: it is asked in each step, and what
// it queues is dropped, but for the markers, which become those of the launch that follows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/device/cuda/lane.h"

namespace paceline::cuda {

struct ReplayOptions {
  bool parts = true;  // parts of a step are graphs
  bool steps = true;  // so are whole steps, where parts are
};

class Replays {
 public:
  // Everything that decides what is queued.
  using Key = std::vector<std::size_t>;

  // `beside`: what whole steps queue on beside `lane`. All outlive it.
  Replays(Runtime& runtime, StreamLane& lane, StreamLane& beside, ReplayOptions options)
      : runtime_(runtime), lane_(lane), beside_(beside), options_(options) {}

  // Queues what `queue` queues on the lane. Throws what it throws; a part that cannot be captured
  // is an error of it, named `what`.
  void run(const char* what, const Key& key, const std::function<void()>& queue);
  // The same for a step, of which run() may queue parts.
  void run_step(const Key& key, const std::function<void()>& queue);

 private:
  static constexpr int kPlainRuns = 2;
  struct Replayed {
    int plain_runs = 0;
    std::unique_ptr<Graph> graph;
    std::size_t marks = 0;
  };
  void queue_step(Replayed& step, const std::function<void()>& queue);
  std::unique_ptr<Graph> captured(const char* what, const char* cure,
                                  const std::function<void()>& queue);

  Runtime& runtime_;
  StreamLane &lane_, &beside_;
  ReplayOptions options_;
  bool inside_ = false;  // what lies within another is queued as it is
  std::map<Key, Replayed> replayed_;
};

}  // namespace paceline::cuda
