#include "engine/train/observers/observers.h"

#include <utility>

#include "engine/core/clock.h"
#include "engine/train/outcome.h"
#include "engine/train/replica_check.h"

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
    run.outcome.checkpoints.resumed_after_steps =
        static_cast<std::int64_t>(run.outcome.resumed_after);
    constexpr std::size_t kFewest = 3;
    if (alone_.steps >= kFewest && beside_.steps >= kFewest) {
      run.outcome.checkpoints.step_slowdown = beside_.mean() / alone_.mean();
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
    run.progress.epochs = run.outcome.quality.epochs;
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

class Reporter : public TrainingObserver {
 public:
  explicit Reporter(std::function<void(const Progress&)> report) : report_(std::move(report)) {}
  bool wants_progress() const override { return true; }
  void progressed(TrainingState&, const Progress& progress) override { report_(progress); }

 private:
  std::function<void(const Progress&)> report_;
};

class ReplicaWatch : public TrainingObserver {
 public:
  ReplicaWatch(Communicator& communicator, const Program& program, const Plan& plan,
               const TrainConfig& config)
      : check_(communicator, program, plan, config.check_every) {}

  void before_run(TrainingState& run) override { check_if_due(run); }
  bool after_step(TrainingState& run, bool) override {
    check_if_due(run);
    return false;
  }
  void after_run(TrainingState& run) override {
    if (run.config.check_replicas) check_.check(run.progress.step);
    run.outcome.timing.consistency_seconds = check_.seconds();
  }

 private:
  // Its seconds are taken from the epoch's, not so the wait for what was queued before.
  void check_if_due(TrainingState& run) {
    if (!check_.due(run.progress.step)) return;
    run.drain();
    const double before = check_.seconds();
    check_.check(run.progress.step);
    run.not_training += check_.seconds() - before;
  }

  ReplicaCheck check_;
};

// Lets a replica's lanes note what they do.
class TraceWriter : public TrainingObserver {
 public:
  explicit TraceWriter(const TraceSetup& setup) : tracer_(setup) {}

  void prepare(TrainingState& run, Feeder::Setup& feeding) override {
    run.clock.trace(&tracer_.ring(TraceLane::phases), run.progress.step + 1);
    run.reducer.trace(&tracer_.ring(TraceLane::communication));
    operations_ = run.program.trace(&tracer_.ring(TraceLane::operations));
    tracer_.begin(run.communicator);
    feeding.trace = &tracer_.ring(TraceLane::input);
  }
  void before_epoch(TrainingState& run) override {
    run.drain();
    run.clock.anchor();
    run.reducer.anchor();
  }
  void after_run(TrainingState& run) override {
    run.clock.settle();
    run.reducer.busy_seconds();
    run.program.trace(nullptr);
    run.outcome.trace = tracer_.finish(run.communicator, operations_);
  }

 private:
  Tracer tracer_;
  bool operations_ = false;
};

}  // namespace

std::unique_ptr<TrainingObserver> make_checkpointer(CheckpointManager& manager) {
  return std::make_unique<Checkpointer>(manager);
}

std::unique_ptr<TrainingObserver> make_replica_watch(Communicator& communicator,
                                                     const Program& program, const Plan& plan,
                                                     const TrainConfig& config) {
  return std::make_unique<ReplicaWatch>(communicator, program, plan, config);
}

std::unique_ptr<TrainingObserver> make_reporter(std::function<void(const Progress&)> report) {
  return std::make_unique<Reporter>(std::move(report));
}

std::unique_ptr<TrainingObserver> make_trace_writer(const TraceSetup& setup) {
  return std::make_unique<TraceWriter>(setup);
}

}  // namespace paceline
