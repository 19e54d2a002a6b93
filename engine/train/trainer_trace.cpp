// How a trainer lets its lanes note what they do.
#include "engine/train/trainer.h"

namespace paceline {

void Trainer::start_trace() {
  tracer_ = std::make_unique<Tracer>(*setup_.trace);
  clock_->trace(&tracer_->ring(TraceLane::phases), progress_.step + 1);
  reducer_->trace(&tracer_->ring(TraceLane::communication));
  operations_traced_ = program_->trace(&tracer_->ring(TraceLane::operations));
  tracer_->begin(communicator_);
}

// Between epochs, before the barrier that begins one: nothing is queued.
void Trainer::anchor_trace() {
  drain();
  clock_->anchor();
  reducer_->anchor();
}

void Trainer::finish_trace() {
  clock_->settle();
  reducer_->busy_seconds();
  program_->trace(nullptr);
  outcome_.trace = tracer_->finish(communicator_, operations_traced_);
}

}  // namespace paceline
