// Saves a run's state between steps, writes it concurrently with training, and restores it on
// resume.
//
//   step 416 | copy to the host, gather statistics | step 417 | step 418 ...
//   rank 0   :                                      write, sync, rename, remove old ones
//
// Training waits only for the copy, and for the previous checkpoint if it is still being written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/facts/timing.h"
#include "engine/train/checkpoint/folder.h"
#include "engine/train/checkpoint/format.h"
#include "engine/train/checkpoint/manifest.h"

namespace paceline {

// Joint decisions of ranks between steps, at the cost of two small exchanges per second.
//
// A signal reaches ranks at different times, and their clocks differ. So ranks vote at steps that
// all of them know in advance. Each rank sends its requests and its step time. From these, all
// ranks compute the same next step for a vote, half a second later. So one rank's request reaches
// all ranks at the same step.

struct PendingRequests {
  bool stop = false, save = false;
};

class RankVote {
 public:
  explicit RankVote(Communicator& communicator) : communicator_(communicator) {}

  // Whether to vote after `step` steps. The same on all ranks.
  bool is_due(std::size_t step) const { return step >= next_; }
  // Collective. Returns the requests of all ranks combined.
  PendingRequests ask(std::size_t step, PendingRequests mine);

 private:
  Communicator& communicator_;
  std::size_t next_ = 0, last_step_ = 0;
  double last_time_ = 0;  // of the previous vote; 0: none
};

// What happens if a resumed run has a different value.
enum class OnChange {
  refused,  // an error: the run would not continue as it began
  announced,
  ignored,
};

// A property that must match or be announced on resume.
struct ResumeFact {
  std::optional<std::string> value;  // empty: not given
  OnChange on_change = OnChange::announced;
  // True: absence is a value too; false: absent values are not compared.
  bool absence_counts = false;
};

// The caller's settings. Only rank 0 uses the folders.
struct CheckpointSetup {
  CheckpointSchedule schedule;  // never: only the final model
  int keep = 0;                 // newest checkpoints; 0: all
  CheckpointContent content = CheckpointContent::everything;
  std::filesystem::path run;     // the run's folder; empty: writes nothing
  std::filesystem::path resume;  // a complete checkpoint; empty: start from scratch
  std::string workload;
  std::map<std::string, ResumeFact> facts;  // see CheckpointManifest::run
  // The signal that requests a stop after a checkpoint; 0: none. Thread-safe.
  std::function<int()> stop_signal;
};

class CheckpointManager {
 public:
  struct Run {  // all outlive the manager
    Communicator* communicator;
    Device* device;
    Program* program;
    const Plan* plan;
    Optimizer optimizer;
    std::size_t global_batch;
    std::vector<int> cpus;                           // CPUs of this replica, for writing
    std::function<void(const std::string&)> notify;  // rank 0; may be empty
  };
  CheckpointManager(const CheckpointSetup& setup, Run run);

  // Collective. Restores the state into the program and returns its progress; nullopt without a
  // checkpoint. Throws input if the checkpoint is damaged or of another network, usage if this run
  // would not continue as that one began.
  std::optional<TrainingProgress> resume();

  // Collective; call after each step. Returns what to do now.
  PendingRequests after_step(std::size_t step);
  bool after_epoch(int epoch) const { return setup_.schedule.after_epoch(epoch); }
  bool saves() const { return setup_.schedule.unit != CheckpointUnit::never; }

  // Collective, with the compute lane drained. `progress` has this rank's sums.
  void save(TrainingProgress progress);
  bool is_saved(std::size_t step) const { return saved_step_ == step; }
  // Whether a checkpoint is being written, which may slow down steps.
  bool is_writing() const { return background_.busy(); }

  // Collective. Waits for the last checkpoint, or throws its error.
  void settle();
  // Collective. Saves the final state as RUN/model.
  void save_model(TrainingProgress progress);

  CheckpointFacts times() const;  // call after settle()

 private:
  CheckpointManifest make_manifest(const TrainingProgress& progress) const;
  void wait_for_writer();
  void take_down(TrainingProgress& progress);
  void write(CheckpointManifest manifest);
  void check_goes_on(const CheckpointManifest& manifest) const;
  void put_back(const CheckpointManifest& manifest);
  void hand_out(std::span<std::byte> to, const std::byte* from);
  void hand_out_statistics(std::span<std::byte> to, int ranks_then);
  bool keeps_moments() const { return setup_.content == CheckpointContent::everything; }
  bool is_first() const { return run_.communicator->rank() == 0; }
  void notify(const std::string& line) const {
    if (run_.notify) run_.notify(line);
  }

  const CheckpointSetup& setup_;
  Run run_;
  RankVote vote_;
  std::unique_ptr<CheckpointFolder> folder_;  // on rank 0, if it saves
  Snapshot snapshot_;
  std::string loss_scale_;
  std::optional<std::size_t> saved_step_, taken_step_;
  double saved_at_;
  CheckpointFacts times_;
  std::mutex mutex_;            // protects the members below, which the background thread writes
  std::exception_ptr failure_;  // of the last checkpoint
  std::size_t written_ = 0, bytes_ = 0, failed_ = 0;
  Background background_;  // destroyed first
};

}  // namespace paceline
