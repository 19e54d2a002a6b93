// The manifest of a checkpoint: "manifest.json".
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/facts/training.h"

namespace paceline {

// The progress of a run.
struct TrainingProgress {
  std::size_t step = 0;      // completed, in total
  int epoch = 0;             // complete ones
  std::size_t position = 0;  // samples used, in the endless sequence of passes (see stream.h)
  std::size_t position_in_epoch = 0;  // of these, in the incomplete epoch
  long updates = 0;                   // of the optimizer
  std::array<double, 4> sums{};       // LossSums of that epoch so far, over all ranks
  std::vector<EpochFacts> epochs{};   // completed ones
};

struct CheckpointFile {
  std::string name;
  std::size_t bytes = 0;
  std::string hash;  // see core/hash.h
};

constexpr int kCheckpointVersion = 2;

struct CheckpointManifest {
  std::string workload, network;
  TrainingProgress progress;
  int ranks = 1;
  std::size_t global_batch = 0;
  std::string optimizer;
  std::string real;  // type of the values: "f32"
  // Everything else that determines how the run continues, by name: command-line parameters,
  // "data_hash", "build".
  std::map<std::string, std::string> run;
  std::string loss_scale;  // the device's state, hexadecimal; may be empty
  std::string created_at;  // UTC
  std::vector<CheckpointFile> files;

  std::string json() const;
  std::string text() const;   // progress, model, files and origin, a line each
  std::size_t bytes() const;  // of all files
};

// Checks every value. Throws input naming `where` and the key, with a hint for newer versions.
CheckpointManifest parse_manifest(std::string_view text, const std::string& where);

// When checkpoints are due: every N steps, epochs or minutes.

enum class CheckpointUnit { never, steps, epochs, minutes };

struct CheckpointSchedule {
  CheckpointUnit unit = CheckpointUnit::never;
  double every = 0;  // a whole number, except for minutes

  bool after_step(std::size_t step) const;   // completed steps in total
  bool after_epoch(int epoch) const;         // completed epochs in total
  bool after_seconds(double seconds) const;  // since the last checkpoint
};

// Parses "17 steps", "17steps", "1 epoch", "0.5 minutes". Throws usage naming `where`.
CheckpointSchedule parse_checkpoint_schedule(const std::string& text, const std::string& where);

}  // namespace paceline
