// The checkpoints of a run: RUN/checkpoints/WORKLOAD-0003 after three epochs,
// WORKLOAD-0003-step-00000417 within the fourth. Only one run at a time writes there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/train/checkpoint/manifest.h"

namespace paceline {

struct FoundCheckpoint {
  std::filesystem::path folder;
  std::size_t step = 0;
  std::string damage;  // why it is unusable; empty: it seems complete
};

// The checkpoints in `run`/checkpoints, oldest first. Reads only manifests; one with a damaged
// manifest is sorted by its name.
std::vector<FoundCheckpoint> find_checkpoints(const std::filesystem::path& run);

// A checkpoint itself, or all of a run. Throws input if there is none.
std::vector<std::filesystem::path> named_checkpoints(const std::filesystem::path& path);

// The checkpoint for --resume, except "latest": a checkpoint, a run's folder, its folder of
// checkpoints, or the name of another job's run folder next to `run`. Returns the newest one with
// correct checksums, and adds a line to `skipped` for each newer one. Throws input if there is
// none.
std::filesystem::path find_resumed(const std::string& text, const std::filesystem::path& run,
                                   std::vector<std::string>& skipped);
// For --resume latest: the same for `run`. Empty if the run has no checkpoint yet.
std::optional<std::filesystem::path> find_latest(const std::filesystem::path& run,
                                                 std::vector<std::string>& skipped);

class CheckpointFolder {
 public:
  // Creates RUN/checkpoints, locks it for this run, and removes incomplete checkpoints of crashed
  // runs. Throws input if another run has the lock.
  CheckpointFolder(const std::filesystem::path& run, std::string workload);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // The folder for a checkpoint at this progress.
  std::filesystem::path checkpoint_path(const TrainingProgress& progress) const;
  // Removes all but the newest `keep` checkpoints (0: none).
  void prune(int keep) const;

 private:
  std::filesystem::path folder_;
  std::string workload_;
  int lock_ = -1;
};

// Runs one job at a time concurrently with training.

class Background {
 public:
  // CPUs of the thread. Empty: those of the caller of start().
  explicit Background(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  ~Background();  // waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Waits for the previous job and throws its error, then starts `job`.
  void start(std::function<void()> job);
  void wait();
  // Waits at most `seconds` for the job. True: it is done.
  bool is_done_within(double seconds);
  bool busy() const { return busy_.load(); }
  double seconds() const { return seconds_; }  // of all finished jobs

 private:
  void join() noexcept;

  std::vector<int> cpus_;
  std::thread thread_;
  std::atomic<bool> busy_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  double seconds_ = 0, last_seconds_ = 0;
  std::exception_ptr error_;
};

}  // namespace paceline
