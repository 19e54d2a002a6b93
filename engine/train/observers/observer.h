// What watches a training run: reports, event files, checkpoints, a trace, comparisons of replicas.
// The trainer's loop (trainer.cpp) says when each is called; none of them changes what is trained.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/feeder.h"
#include "engine/plan/plan.h"
#include "engine/train/checkpoint/manifest.h"
#include "engine/train/config.h"
#include "engine/train/outcome.h"
#include "engine/train/phase_clock.h"
#include "engine/train/reducer.h"

namespace paceline {

struct Progress {
  std::size_t step = 0, steps = 0;  // done, in all
  int epoch = 0;                    // from 1
  double loss = 0;                  // mean of this rank's samples since the last report
  double samples_per_second = 0;    // of all replicas, since the last report
};

// A replica's run as it stands.
struct TrainingState {
  const TrainConfig& config;
  Communicator& communicator;
  Program& program;
  const Plan& plan;
  PhaseClock& clock;
  Reducer& reducer;
  TrainingProgress& progress;
  TrainingOutcome& outcome;
  LossSums& epoch_totals;          // of this rank
  const double& rate;              // of the last step
  const std::size_t& total_steps;  // those done before the run went on included
  double& not_training;            // seconds of this epoch that are not its own
  std::function<void()> drain;     // waits for what is queued
};

class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Before the first batch is read.
  virtual void prepare(TrainingState&, Feeder::Setup&) {}
  virtual void before_run(TrainingState&) {}
  // Nothing is queued then.
  virtual void before_epoch(TrainingState&) {}
  virtual void before_step(TrainingState&) {}
  // Every few steps or seconds, if somebody wants it: what is queued is waited for.
  virtual bool wants_progress() const { return false; }
  virtual void progressed(TrainingState&, const Progress&) {}
  // Whether the run is to stop; not asked for after the last step of an epoch.
  virtual bool after_step(TrainingState&, [[maybe_unused]] bool last_of_epoch) { return false; }
  // Before the epoch is counted. `cut`: a limit of steps ended it.
  virtual void after_last_step(TrainingState&, [[maybe_unused]] bool cut) {}
  // After evaluation. Whether the run is to stop.
  virtual bool after_epoch(TrainingState&, [[maybe_unused]] double seconds) { return false; }
  // In reverse order.
  virtual void after_run(TrainingState&) {}
};

}  // namespace paceline
