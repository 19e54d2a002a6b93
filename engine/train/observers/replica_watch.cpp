#include "engine/train/observers/observers.h"
#include "engine/train/replica_check.h"

namespace paceline {

namespace {

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
    run.outcome.consistency_seconds = check_.seconds();
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

}  // namespace

std::unique_ptr<TrainingObserver> make_replica_watch(Communicator& communicator,
                                                     const Program& program, const Plan& plan,
                                                     const TrainConfig& config) {
  return std::make_unique<ReplicaWatch>(communicator, program, plan, config);
}

}  // namespace paceline
