#include "engine/device/cuda/replays.h"

#include <algorithm>

#include "engine/core/error.h"

namespace paceline::cuda {

namespace {

class Inside {
 public:
  explicit Inside(bool& flag) : flag_(flag) { flag_ = true; }
  ~Inside() { flag_ = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void Replays::run(const char* what, const Key& key, const std::function<void()>& queue) {
  if (!enabled_ || inside_) return queue();
  Part& part = parts_[key];
  if (!part.graph) {
    const Inside inside(inside_);
    if (part.plain_runs++ < kPlainRuns) return queue();
    part.graph = captured(what, queue);
  }
  part.graph->launch(lane_.stream());
}

std::unique_ptr<Graph> Replays::captured(const char* what, const std::function<void()>& queue) {
  runtime_.begin_capture(lane_.stream());
  try {
    queue();
    return runtime_.end_capture(lane_.stream());
  } catch (const Error& error) {
    runtime_.cancel_capture(lane_.stream());
    throw Error(error.kind(), std::string("cannot capture: ") + error.what(), what,
                "give --no-graph to queue it anew in each step");
  }
}

std::size_t Replays::graphs() const {
  return static_cast<std::size_t>(std::count_if(
      parts_.begin(), parts_.end(), [](const auto& part) { return part.second.graph != nullptr; }));
}

}  // namespace paceline::cuda
