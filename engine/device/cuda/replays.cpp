#include "engine/device/cuda/replays.h"

#include "engine/core/error.h"
#include "engine/core/log.h"

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

class Joined {
 public:
  Joined(StreamLane& lane, StreamLane& beside, GraphMarks& marks, Event over)
      : lane_(lane), beside_(beside) {
    lane_.join(marks);
    beside_.join(marks, over);
  }
  ~Joined() {
    lane_.leave();
    beside_.leave();
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

 private:
  StreamLane &lane_, &beside_;
};

}  // namespace

void Replays::run(const char* what, const Key& key, const std::function<void()>& queue) {
  if (lane_.replays()) return;  // the step's graph has it
  if (!options_.parts || inside_) return queue();
  Replayed& part = replayed_[key];
  if (!part.graph) {
    const Inside inside(inside_);
    if (part.plain_runs++ < kPlainRuns) return queue();
    part.graph = captured(what, "give --no-graph to queue it anew in each step", queue);
  }
  part.graph->launch(lane_.stream());
}

void Replays::run_step(const Key& key, const std::function<void()>& queue,
                       const std::function<void()>& undo_bookkeeping) {
  if (!options_.parts || !options_.steps) return queue();
  Replayed& step = replayed_[key];
  try {
    const Inside inside(inside_);
    if (!step.graph && step.plain_runs++ < kPlainRuns) return queue();
    const Event over = lane_.take_event();
    queue_step(step, over, queue);
    step.graph->launch(lane_.stream());
    if (beside_.gave_markers()) runtime_.record(over, lane_.stream());
    return;
  } catch (const Error& error) {
    const bool queued_nothing = step.plain_runs > kPlainRuns && !step.graph;
    if (!undo_bookkeeping || !queued_nothing || error.kind() != ErrorKind::internal) throw;
    log::warning("{}, as this run does from now on", error.what());
  }
  options_.steps = false;
  gave_up_steps_ = true;
  undo_bookkeeping();
  queue();
}

void Replays::queue_step(Replayed& step, Event over, const std::function<void()>& queue) {
  GraphMarks marks{step.graph.get(), step.marks};
  const Joined joined(lane_, beside_, marks, over);
  if (!step.graph) {
    step.graph = captured("a step", "give --no-step-graph to capture its parts only", queue);
    step.marks = marks.count;
    return;
  }
  queue();
  if (marks.count == marks.most) return;
  throw internal_error("a step gave other markers than when it was captured");
}

std::unique_ptr<Graph> Replays::captured(const char* what, const char* cure,
                                         const std::function<void()>& queue) {
  runtime_.begin_capture(lane_.stream());
  try {
    queue();
    return runtime_.end_capture(lane_.stream());
  } catch (const Error& error) {
    runtime_.cancel_capture(lane_.stream());
    if (error.kind() != ErrorKind::internal) throw;
    throw Error(error.kind(), std::string("the step cannot be captured: ") + error.what(), what,
                cure);
  } catch (...) {
    runtime_.cancel_capture(lane_.stream());
    throw;
  }
}

}  // namespace paceline::cuda
