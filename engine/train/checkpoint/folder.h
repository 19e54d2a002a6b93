// The checkpoints of a run: RUN/checkpoints/WORKLOAD-0003 after three epochs, and
// WORKLOAD-0003-step-00000417 within the fourth. One run at a time writes there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/checkpoint/manifest.h"

namespace paceline {

struct FoundCheckpoint {
  std::filesystem::path folder;
  std::size_t step = 0;
  std::string damage;  // why it cannot be used; empty: it seems whole
};

// Those below `run`/checkpoints, from the oldest to the newest; one whose manifest is damaged
// stands where its name says. Files are not read, but for the manifests.
std::vector<FoundCheckpoint> find_checkpoints(const std::filesystem::path& run);

// What `--resume` means, but for "latest": a checkpoint, a run's folder, its folder of checkpoints,
// or the name of another job's run folder beside `run`. The newest checkpoint there whose checksums
// are right; `skipped` gets a line for each newer one. Throws input where there is none.
std::filesystem::path find_resumed(const std::string& text, const std::filesystem::path& run,
                                   std::vector<std::string>& skipped);
// "latest": the same of `run`; nothing where the run has no checkpoint yet.
std::optional<std::filesystem::path> find_latest(const std::filesystem::path& run,
                                                 std::vector<std::string>& skipped);

class CheckpointFolder {
 public:
  // Makes RUN/checkpoints, takes it for this run and removes what runs that died left unfinished.
  // Throws input where another run has it.
  CheckpointFolder(const std::filesystem::path& run, std::string workload);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // Where the checkpoint of this progress goes.
  std::filesystem::path place_of(const TrainingProgress& progress) const;
  // Removes all but the newest `keep` (0: none is removed).
  void prune(int keep) const;

 private:
  std::filesystem::path folder_;
  std::string workload_;
  int lock_ = -1;
};

}  // namespace paceline
