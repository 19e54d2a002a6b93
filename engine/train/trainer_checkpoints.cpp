// How a trainer keeps its state and goes on from it.
#include <utility>

#include "engine/core/clock.h"
#include "engine/train/trainer.h"

namespace paceline {

// Steps are counted as those of this world, where the one before had another size.
void Trainer::resume() {
  CheckpointManager::Run run;
  run.communicator = &communicator_;
  run.device = setup_.device.get();
  run.program = program_.get();
  run.plan = &plan_;
  run.optimizer = config_.optimizer;
  run.global_batch = stream_.global_batch;
  run.cpus = setup_.checkpoint_cpus;
  run.tell = setup_.tell;
  keeper_ = std::make_unique<CheckpointManager>(*setup_.checkpoints, std::move(run));
  if (keeper_->saves() && communicator_.rank() == 0) {
    memory_.checkpoint = memory_.state();
  }
  const auto before = keeper_->resume();
  if (!before) return;
  progress_ = *before;
  stream_.start = progress_.position;
  stream_.start_in_epoch = progress_.position_in_epoch;
  const SampleStream stream(stream_);
  const std::size_t per_epoch = stream.steps_per_epoch();
  progress_.step = static_cast<std::size_t>(progress_.epoch) * per_epoch + per_epoch -
                   stream.steps_of_first_epoch();
  epoch_totals_ = LossSums::of(progress_.sums);
  outcome_.epochs = progress_.epochs;
  outcome_.resumed = true;
  outcome_.resumed_after = progress_.step;
  if (progress_.position_in_epoch == 0) end_if_goal_is_reached();
}

// For how much slower steps are while a checkpoint is written beside them.
void Trainer::note_step_time(bool beside_checkpoint) {
  const double now = now_seconds();
  if (last_step_end_ > 0) {
    StepMean& mean = beside_checkpoint ? beside_checkpoints_ : alone_;
    mean.seconds += now - last_step_end_;
    ++mean.steps;
  }
  last_step_end_ = now;
}

void Trainer::save() {
  drain();
  const double start = now_seconds();
  epoch_totals_ += program_->take_sums();
  progress_.sums = epoch_totals_.values();
  progress_.epochs = outcome_.epochs;
  keeper_->save(progress_);
  not_training_ += now_seconds() - start;
  last_step_end_ = 0;
}

// After evaluation, which a checkpoint at the end of an epoch includes.
bool Trainer::stops_after_epoch() {
  if (!keeper_ || !keeper_->saves()) return false;
  const PendingRequests requests = std::exchange(pending_, {});
  const bool last = progress_.step >= total_steps_;
  const bool due = requests.save || requests.stop || last || keeper_->after_epoch(progress_.epoch);
  if (due && !keeper_->is_saved(progress_.step)) save();
  return requests.stop && !last;
}

// A run that was stopped says so only once its checkpoint is complete and every rank knows.
void Trainer::finish_checkpoints() {
  keeper_->settle();
  if (!outcome_.stopped) keeper_->save_model(progress_);
  outcome_.checkpoints = keeper_->times();
  constexpr std::size_t kFewest = 3;
  if (alone_.steps >= kFewest && beside_checkpoints_.steps >= kFewest) {
    outcome_.checkpoints.slowdown = beside_checkpoints_.mean() / alone_.mean();
  }
}

}  // namespace paceline
