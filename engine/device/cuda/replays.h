// Repeats queued work with the same addresses: it is queued normally at first (libraries load and
// choose algorithms), then captured, then replayed as a graph.
//
// A part of a step begins and ends on the compute lane and needs no bookkeeping, so it is replayed
// without being called again. A whole step is on several lanes, has markers that are read later,
// and the host keeps books while queuing. So it is called in each step, and everything it queues is
// dropped except for the markers, which become those of the following launch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/device/cuda/lane.h"

namespace paceline::cuda {

struct ReplayOptions {
  bool parts = true;  // replays parts of a step as graphs
  bool steps = true;  // replays whole steps too; requires `parts`
};

class Replays {
 public:
  // Everything that determines the queued work.
  using Key = std::vector<std::size_t>;

  // `beside`: the lane that whole steps use in addition to `lane`. All arguments outlive it.
  Replays(Runtime& runtime, StreamLane& lane, StreamLane& beside, ReplayOptions options)
      : runtime_(runtime), lane_(lane), beside_(beside), options_(options) {}

  // Queues the work of `queue` on the lane. Throws its errors. A part that cannot be captured is an
  // error that names `what`.
  void run(const char* what, const Key& key, const std::function<void()>& queue);
  // The same for a step, in which `queue` may call run() for parts. If it cannot be captured and
  // `forget` is not empty, calls that (what the host noted since is not true), warns, and from then
  // on captures parts only.
  void run_step(const Key& key, const std::function<void()>& queue,
                const std::function<void()>& forget = {});
  bool gave_up_steps() const { return gave_up_steps_; }

 private:
  static constexpr int kPlainRuns = 2;
  struct Replayed {
    int plain_runs = 0;
    std::unique_ptr<Graph> graph;
    std::size_t marks = 0;
  };
  void queue_step(Replayed& step, Event over, const std::function<void()>& queue);
  std::unique_ptr<Graph> captured(const char* what, const char* cure,
                                  const std::function<void()>& queue);

  Runtime& runtime_;
  StreamLane &lane_, &beside_;
  ReplayOptions options_;
  bool inside_ = false;  // nested work is queued directly
  bool gave_up_steps_ = false;
  std::map<Key, Replayed> replayed_;
};

}  // namespace paceline::cuda
