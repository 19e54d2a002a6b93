// Keeps a run's state safe: takes it down between steps, writes it beside the training, and puts it
// back where a run goes on.
//
//   step 416 | copy to the host, gather statistics | step 417 | step 418 ...
//   rank 0   :                                      write, sync, rename, remove old ones
//
// Training waits for the copy only, and for the checkpoint before if that is still being written.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/train/checkpoint/background.h"
#include "engine/train/checkpoint/folder.h"
#include "engine/train/checkpoint/format.h"
#include "engine/train/checkpoint/rank_vote.h"
#include "engine/train/checkpoint/schedule.h"

namespace paceline {

// What becomes of a run that goes on with another value than it had.
enum class OnChange {
  refused,  // it would not go on as it began
  announced,
  ignored,
};

// A value that tells this run from others.
struct ResumeFact {
  std::optional<std::string> value;  // none: not given
  OnChange on_change = OnChange::announced;
  bool absence_counts = false;  // not to have it is a value, too; else it is not compared then
};

// What the run's caller decides. Folders count on rank 0 alone.
struct CheckpointSetup {
  CheckpointSchedule schedule;   // never: the final model only
  int keep = 0;                  // newest checkpoints; 0: all
  std::filesystem::path run;     // the run's folder; empty: nothing is written
  std::filesystem::path resume;  // a whole checkpoint; empty: start afresh
  std::string workload;
  std::map<std::string, ResumeFact> facts;  // see CheckpointManifest::run
  // The signal that asks this process to stop after a checkpoint, 0: none came. From any thread.
  std::function<int()> stop_signal;
};

class CheckpointManager {
 public:
  struct Run {  // all outlive the keeper
    Communicator* communicator;
    Device* device;
    Program* program;
    const Plan* plan;
    Optimizer optimizer;
    std::size_t global_batch;
    std::vector<int> cpus;                         // of this replica, to write with
    std::function<void(const std::string&)> tell;  // rank 0; may be empty
  };
  CheckpointManager(const CheckpointSetup& setup, Run run);

  // Collective. Puts the resumed state into the program and returns how far it is; without one:
  // nothing done yet, and nullopt. Throws input where the checkpoint is damaged or of another
  // network, usage where this run would not go on as that one did.
  std::optional<TrainingProgress> resume();

  // Collective, after each step: what is to be done now.
  PendingRequests after_step(std::size_t step);
  bool after_epoch(int epoch) const { return setup_.schedule.after_epoch(epoch); }
  bool saves() const { return setup_.schedule.unit != CheckpointUnit::never; }

  // Collective, with the compute lane drained. `progress` has this rank's sums.
  void save(TrainingProgress progress);
  bool is_saved(std::size_t step) const { return saved_step_ == step; }
  // Whether one is being written: steps beside it may be slower.
  bool is_writing() const { return background_.busy(); }

  // Collective: the last one is written, or its error is thrown.
  void settle();
  // Collective: the final state as RUN/model.
  void save_model(TrainingProgress progress);

  CheckpointTimes times() const;  // after settle()

 private:
  CheckpointManifest manifest_of(const TrainingProgress& progress) const;
  void wait_for_writer();
  void take_down(TrainingProgress& progress);
  void write(CheckpointManifest manifest);
  void check_goes_on(const CheckpointManifest& manifest) const;
  void put_back(const CheckpointManifest& manifest);
  void hand_out(std::span<std::byte> to, const std::byte* from);
  void hand_out_statistics(std::span<std::byte> to, int ranks_then);
  bool is_first() const { return run_.communicator->rank() == 0; }
  void tell(const std::string& line) const {
    if (run_.tell) run_.tell(line);
  }

  const CheckpointSetup& setup_;
  Run run_;
  RankVote vote_;
  std::unique_ptr<CheckpointFolder> folder_;  // rank 0, where it saves
  Snapshot snapshot_;
  std::string loss_scale_;
  std::optional<std::size_t> saved_step_, taken_step_;
  double saved_at_;
  CheckpointTimes times_;
  std::mutex mutex_;            // of what follows, which the background writes
  std::exception_ptr failure_;  // of the last one
  std::size_t written_ = 0, bytes_ = 0, failed_ = 0;
  Background background_;  // ends first
};

}  // namespace paceline
