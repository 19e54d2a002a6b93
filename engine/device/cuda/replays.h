// Parts of a step that are queued again and again with the same addresses: the first times each is
// queued as it is (libraries load and choose), then captured, then replayed as a graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/device/cuda/lane.h"

namespace paceline::cuda {

class Replays {
 public:
  // Everything that decides what a part queues.
  using Key = std::vector<std::size_t>;

  Replays(Runtime& runtime, StreamLane& lane, bool enabled)
      : runtime_(runtime), lane_(lane), enabled_(enabled) {}

  // Queues what `queue` queues on the lane. Throws what it throws; a part that cannot be captured
  // is an error of it, named `what`.
  void run(const char* what, const Key& key, const std::function<void()>& queue);

  std::size_t graphs() const;

 private:
  static constexpr int kPlainRuns = 2;
  struct Part {
    int plain_runs = 0;
    std::unique_ptr<Graph> graph;
  };
  std::unique_ptr<Graph> captured(const char* what, const std::function<void()>& queue);

  Runtime& runtime_;
  StreamLane& lane_;
  bool enabled_;
  bool inside_ = false;  // a part within a part is queued as it is
  std::map<Key, Part> parts_;
};

}  // namespace paceline::cuda
