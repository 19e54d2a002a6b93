// Trains one replica: the loop that every rank runs.
#pragma once

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
    std::vector<int> input_cpus, checkpoint_cpus;  // empty: anywhere
    double first_sum_seconds = 0;                  // see check_first_sum()
    bool counts_caches = true;  // false where another replica does that shares them
    const CheckpointSetup* checkpoints = nullptr;  // null: none is written or resumed
    const EventSetup* events = nullptr;            // rank 0; null: nothing for TensorBoard
    const TraceSetup* trace = nullptr;             // of every rank; null: no trace
    std::function<void(const Progress&)> report;   // rank 0; may be empty
    std::function<void(const std::string&)> note;  // details for the log; may be empty
    std::function<void(const std::string&)> tell;  // what a user should see; may be empty
  };

  // Plans, allocates, compiles and initialises; collective. After it the step's memory is fixed.
  explicit Trainer(Setup setup);
  // Waits for what is queued: after a failure the communicator must have been aborted.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // The whole run; collective. Times start at a barrier.
  TrainingOutcome run();

  // For tests in locked steps: one step on a given batch, parameters as they stand.
  Program& program() { return *program_; }
  const Plan& plan() const { return plan_; }
  void step(const Batch& batch);

 private:
  Communicator& reducing_communicator();
  void start_weights();
  void sum_once();
  void resume();
  void go_on_from(const TrainingProgress& before);
  void make_observers();
  TrainingState state();
  void train_epochs(TrainingState& run, Feeder& feeder);
  // Returns false where the run is to stop; it is saved then.
  bool run_epoch(TrainingState& run, Feeder& feeder, std::size_t steps);
  void count_step(const StagedBatch& staged);
  void finish_epoch(double seconds);
  void check_parameters();
  bool evaluates_after_epoch() const;
  void evaluate_now();
  void end_if_goal_is_reached();
  bool counts_top5() const { return plan_.classes > 5; }
  const StagedBatch& step_of(Feeder& feeder);
  void load(const Batch& batch);
  void forward();
  void backward_and_reduce();
  void apply_updates(const UpdateRule& rule);
  double epochs_done() const;
  UpdateRule rule_of_step();
  void measure_gradients(const UpdateRule& rule);
  int last_operation() const { return static_cast<int>(plan_.operations.size()) - 1; }
  void drain();
  void report_progress(TrainingState& run);
  void gather(TrainingOutcome& outcome);
  Batch batch_of(const StagedBatch& staged, int part) const;

  Setup setup_;
  const TrainConfig& config_;
  Communicator& communicator_;
  Plan plan_;
  MemoryUse memory_;
  std::unique_ptr<StagedCommunicator> staged_;  // where the communicator knows host memory only
  Memory gradients_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<PhaseClock> clock_;
  std::unique_ptr<CheckpointManager> checkpoints_;
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
  StreamSpec stream_;
  Feeder::Setup feeding_;
  std::size_t total_steps_ = 0;  // those done before the run went on included
  TrainingProgress progress_;
  double not_training_ = 0;  // seconds of this epoch that went into checkpoints and comparisons
  InputCounts first_epoch_, evaluation_;  // of this rank
  bool overlap_ = false;
  std::optional<Schedule> schedule_;
  double rate_ = 0;           // of the step at hand
  double summed_before_ = 0;  // seconds, by sum_once()
  double compile_seconds_ = 0;
  LossSums epoch_totals_;
  double last_report_ = 0;
  std::size_t last_report_step_ = 0;
  TrainingOutcome outcome_;
};

}  // namespace paceline
