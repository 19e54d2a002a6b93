#include <utility>

#include "engine/core/clock.h"
#include "engine/train/observers/observers.h"

namespace paceline {

namespace {

class Checkpointer : public TrainingObserver {
 public:
  explicit Checkpointer(CheckpointManager& manager) : manager_(manager) {}

  // The initial weights.
  void before_run(TrainingState& run) override {
    if (manager_.saves() && !run.outcome.resumed) save(run);
  }
  void before_step(TrainingState&) override { beside_checkpoint_ = manager_.is_writing(); }
  bool after_step(TrainingState& run, bool last_of_epoch) override {
    note_step_time();
    pending_ = manager_.after_step(run.progress.step);
    if (last_of_epoch || (!pending_.save && !pending_.stop)) return false;
    save(run);
    return std::exchange(pending_, {}).stop;
  }
  // Whoever goes on from where a limit of steps cut the epoch goes on within it.
  void after_last_step(TrainingState& run, bool cut) override {
    if (cut && manager_.saves()) save(run);
  }
  // After evaluation, which a checkpoint at the end of an epoch includes.
  bool after_epoch(TrainingState& run, double) override {
    if (!manager_.saves()) return false;
    const PendingRequests requests = std::exchange(pending_, {});
    const bool last = run.progress.step >= run.total_steps;
    const bool due =
        requests.save || requests.stop || last || manager_.after_epoch(run.progress.epoch);
    if (due && !manager_.is_saved(run.progress.step)) save(run);
    return requests.stop && !last;
  }
  // A run that was stopped says so only once its checkpoint is complete and every rank knows.
  void after_run(TrainingState& run) override {
    manager_.settle();
    if (!run.outcome.stopped) manager_.save_model(run.progress);
    run.outcome.checkpoints = manager_.times();
    constexpr std::size_t kFewest = 3;
    if (alone_.steps >= kFewest && beside_.steps >= kFewest) {
      run.outcome.checkpoints.slowdown = beside_.mean() / alone_.mean();
    }
  }

 private:
  struct StepMean {
    double seconds = 0;
    std::size_t steps = 0;
    double mean() const { return seconds / static_cast<double>(steps); }
  };

  // For how much slower steps are while a checkpoint is written beside them.
  void note_step_time() {
    const double now = now_seconds();
    if (last_step_end_ > 0) {
      StepMean& mean = beside_checkpoint_ ? beside_ : alone_;
      mean.seconds += now - last_step_end_;
      ++mean.steps;
    }
    last_step_end_ = now;
  }

  void save(TrainingState& run) {
    run.drain();
    const RunPart before = run.enter(RunPart::checkpoint);
    const double start = now_seconds();
    run.epoch_totals += run.program.take_sums();
    run.progress.sums = run.epoch_totals.values();
    run.progress.epochs = run.outcome.epochs;
    manager_.save(run.progress);
    run.not_training += now_seconds() - start;
    run.enter(before);
    last_step_end_ = 0;
  }

  CheckpointManager& manager_;
  PendingRequests pending_;  // until the epoch's end, which is a step away
  bool beside_checkpoint_ = false;
  StepMean alone_, beside_;
  double last_step_end_ = 0;
};

}  // namespace

std::unique_ptr<TrainingObserver> make_checkpointer(CheckpointManager& manager) {
  return std::make_unique<Checkpointer>(manager);
}

}  // namespace paceline
