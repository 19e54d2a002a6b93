// Trains one replica: the loop that every rank runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/staged/staged_communicator.h"
#include "engine/device/device.h"
#include "engine/input/dataset.h"
#include "engine/input/feeder.h"
#include "engine/plan/plan.h"
#include "engine/train/config.h"
#include "engine/train/memory_use.h"
#include "engine/train/outcome.h"
#include "engine/train/reducer.h"

namespace paceline {

struct Progress {
  std::size_t step = 0, steps = 0;  // done, in all
  int epoch = 0;                    // from 1
  double loss = 0;                  // mean of this rank's samples since the last report
  double samples_per_second = 0;    // of all replicas, since the last report
};

class Trainer {
 public:
  struct Setup {
    const TrainConfig* config;
    const Network* network;
    const DatasetPair* data;
    Communicator* communicator;
    std::unique_ptr<Device> device;
    int input_threads = 0;
    std::vector<int> input_cpus;
    bool counts_caches = true;  // false where another replica does that shares them
    std::function<void(const Progress&)> report;   // rank 0; may be empty
    std::function<void(const std::string&)> note;  // details for the log; may be empty
    std::function<void(const std::string&)> tell;  // what a user should see; may be empty
  };

  // Plans, allocates, compiles and initialises; collective. After it the step's memory is fixed.
  explicit Trainer(Setup setup);

  // The whole run; collective. Times start at a barrier.
  TrainingOutcome run();

  // For tests in locked steps: one step on a given batch, parameters as they stand.
  Program& program() { return *program_; }
  const Plan& plan() const { return plan_; }
  void step(const Batch& batch);

 private:
  Communicator& reducing_communicator();
  void start_weights();
  void run_epoch(Feeder& feeder, int epoch, std::size_t steps);
  void finish_epoch(int epoch, double seconds);
  void evaluate_now();
  void backward_and_reduce();
  void apply_updates();
  void drain();
  void report_progress(int epoch);
  void gather(TrainingOutcome& outcome);
  void check_equal_parameters(std::uint64_t mine);
  Batch batch_of(const StagedBatch& staged) const;

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
  StreamSpec stream_;
  Feeder::Setup feeding_;
  std::size_t total_steps_ = 0;
  InputCounts first_epoch_, evaluation_;  // of this rank
  bool overlap_ = false;
  long update_count_ = 0;
  double rate_ = 0;
  LossSums epoch_totals_;
  double last_report_ = 0;
  std::size_t last_report_step_ = 0;
  TrainingOutcome outcome_;
};

}  // namespace paceline
