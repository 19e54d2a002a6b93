// Lets a replica's lanes note what they do.
#include "engine/train/observers/observers.h"

namespace paceline {

namespace {

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

std::unique_ptr<TrainingObserver> make_trace_writer(const TraceSetup& setup) {
  return std::make_unique<TraceWriter>(setup);
}

}  // namespace paceline
