// Observers of a training run: reports, event files, checkpoints, traces, comparisons of replicas.
// The trainer's loop (trainer.cpp) calls them. They never change what is trained.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/feeder.h"
#include "engine/plan/plan.h"
#include "engine/train/checkpoint/manifest.h"
#include "engine/train/config.h"
#include "engine/train/phase_clock.h"
#include "engine/train/reducer.h"

namespace paceline {

struct TrainingOutcome;

// What a run does, for meters of the machine.

enum class RunPart { other, training, evaluation, checkpoint };

// Called whenever a replica enters a part; the work of the part before has ended on its device.
using RunPartListener = std::function<void(RunPart)>;

struct Progress {
  std::size_t step = 0, steps = 0;  // completed, in total
  int epoch = 0;                    // from 1
  double loss = 0;                  // mean over this rank's samples since the last report
  double samples_per_second = 0;    // of all replicas, since the last report
};

// The current state of a replica's run.
struct TrainingState {
  const TrainConfig& config;
  Communicator& communicator;
  Program& program;
  const Plan& plan;
  PhaseClock& clock;
  Reducer& reducer;
  TrainingProgress& progress;
  TrainingOutcome& outcome;
  LossSums& epoch_totals;                 // of this rank
  const double& rate;                     // of the last step
  const std::size_t& total_steps;         // including steps before a resume
  double& not_training;                   // seconds of this epoch that are not training
  std::function<void()> drain;            // waits for queued work
  std::function<RunPart(RunPart)> enter;  // returns the part before
};

class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Before the first batch is read.
  virtual void prepare(TrainingState&, Feeder::Setup&) {}
  virtual void before_run(TrainingState&) {}
  // No work is queued at this point.
  virtual void before_epoch(TrainingState&) {}
  virtual void before_step(TrainingState&) {}
  // Whether the observer wants a progress report now; queued work is then waited for.
  virtual bool wants_progress() const { return false; }
  virtual void progressed(TrainingState&, const Progress&) {}
  // Returns true to stop the run; ignored after the last step of an epoch.
  virtual bool after_step(TrainingState&, [[maybe_unused]] bool last_of_epoch) { return false; }
  // Before the epoch is counted. `cut`: the step limit ended the epoch.
  virtual void after_last_step(TrainingState&, [[maybe_unused]] bool cut) {}
  // After evaluation. Returns true to stop the run.
  virtual bool after_epoch(TrainingState&, [[maybe_unused]] double seconds) { return false; }
  // Called in reverse order.
  virtual void after_run(TrainingState&) {}
};

}  // namespace paceline
