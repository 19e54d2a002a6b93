// Trains one replica: the loop that every rank runs.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/wrappers/staged/staged_communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/feeder.h"
#include "engine/plan/plan.h"
#include "engine/train/config.h"
#include "engine/train/memory_use.h"
#include "engine/train/observers/observer.h"
#include "engine/train/observers/observers.h"
#include "engine/train/outcome.h"
#include "engine/train/reducer.h"
#include "engine/train/schedule.h"

namespace paceline {

class Trainer {
 public:
  struct Setup {
    const TrainConfig* config;
    const Network* network;
    const DatasetPair* data;
    Communicator* communicator;
    std::unique_ptr<Device> device;
    int input_threads = 0;
    std::vector<int> input_cpus, checkpoint_cpus;  // empty: any
    double first_sum_seconds = 0;                  // see check_first_sum()
    bool counts_caches = true;  // false: another replica reports the shared caches
    const CheckpointSetup* checkpoints = nullptr;    // null: no checkpoints, no resume
    const EventSetup* events = nullptr;              // rank 0; null: no TensorBoard files
    const TraceSetup* trace = nullptr;               // on every rank; null: no trace
    std::function<void(const Progress&)> report;     // rank 0; may be empty
    std::function<void(const std::string&)> note;    // details for the log; may be empty
    std::function<void(const std::string&)> notify;  // information for users; may be empty
    RunPartListener entered;                         // may be empty
  };

  // Plans, allocates, compiles and initialises. Collective. Steps allocate nothing afterwards.
  explicit Trainer(Setup setup);
  // Waits for queued work. After a failure, abort the communicator first.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Runs everything. Collective. Times start at a barrier.
  TrainingOutcome run();

  // For tests: a single step on a given batch with the current parameters.
  Program& program() { return *program_; }
  const Plan& plan() const { return plan_; }
  void step(const Batch& batch);

 private:
  Communicator& reducing_communicator();
  void start_weights();
  void sum_once();
  void resume();
  void restore_progress(const TrainingProgress& before);
  void make_observers();
  TrainingState state();
  void train_epochs(TrainingState& run, Feeder& feeder);
  // Returns false if the run must stop; its state is saved then.
  bool run_epoch(TrainingState& run, Feeder& feeder, std::size_t steps);
  void count_step(const StagedBatch& staged);
  void finish_epoch(double seconds);
  void check_parameters();
  bool evaluates_after_epoch() const;
  void evaluate_now();
  void end_if_goal_is_reached();
  void lower_rate_on_plateau();
  bool counts_top5() const { return plan_.classes > 5; }
  const StagedBatch& next_step(Feeder& feeder);
  void load(const Batch& batch);
  void forward();
  void backward_and_reduce();
  void apply_updates(const UpdateRule& rule);
  double epochs_done() const;
  UpdateRule rule_of_step();
  void measure_gradients(const UpdateRule& rule);
  int last_operation() const { return static_cast<int>(plan_.operations.size()) - 1; }
  void drain();
  RunPart enter(RunPart part);  // returns the part before
  void report_progress(TrainingState& run);
  std::vector<ReadyGradientsFacts> ready_gradients() const;
  void gather(TrainingOutcome& outcome, RankFacts mine);
  Batch make_batch(const StagedBatch& staged, int part) const;

  Setup setup_;
  const TrainConfig& config_;
  Communicator& communicator_;
  Plan plan_;
  MemoryUse memory_;
  std::unique_ptr<StagedCommunicator> staged_;  // for communicators that only handle host memory
  bool sums_from_host_ = false;
  Memory gradients_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<PhaseClock> clock_;
  std::unique_ptr<CheckpointManager> checkpoints_;
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
  StreamSpec stream_;
  Feeder::Setup feeding_;
  std::size_t total_steps_ = 0;  // including steps before a resume
  TrainingProgress progress_;
  double not_training_ = 0;  // seconds of this epoch spent on checkpoints and comparisons
  InputCounts first_epoch_, evaluation_;  // of this rank
  bool overlap_ = false;
  std::optional<Schedule> schedule_;
  double rate_ = 0;  // of the current step
  RunPart part_ = RunPart::other;
  double summed_before_ = 0;  // seconds, by sum_once()
  LossSums epoch_totals_;
  double last_report_ = 0;
  std::size_t last_report_step_ = 0;
  TrainingOutcome outcome_;
};

// The feeder's next batch. The wait is watched: a hanging file system ends the run, even if no
// other rank waits for this one.
inline const StagedBatch& next_batch(Feeder& feeder, Communicator& communicator) {
  const OwnWait wait(communicator, "its next batch");
  return feeder.next();
}

// Declare it behind a feeder: where an error does away with both, a queued copy may yet have to
// read the last batch.
class BatchInUse {
 public:
  BatchInUse(Program& program, Communicator& communicator)
      : program_(program), communicator_(communicator) {}
  ~BatchInUse() {
    try {
      const StreamWait wait(communicator_, "the steps before");
      program_.wait_for_input();
    } catch (const std::exception&) {  // of a device that does nothing any more
    }
  }
  BatchInUse(const BatchInUse&) = delete;
  BatchInUse& operator=(const BatchInUse&) = delete;

 private:
  Program& program_;
  Communicator& communicator_;
};

}  // namespace paceline
