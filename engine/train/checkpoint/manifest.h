// What a checkpoint says of itself: "manifest.json".
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/outcome.h"

namespace paceline {

// How far a run is.
struct TrainingProgress {
  std::size_t step = 0;      // done, in all
  int epoch = 0;             // complete ones
  std::size_t position = 0;  // samples taken, in the endless sequence of passes (see stream.h)
  std::size_t position_in_epoch = 0;   // of these, in the epoch that is not complete
  long updates = 0;                    // of the optimizer
  std::array<double, 4> sums{};        // LossSums of that epoch so far, of all ranks
  std::vector<EpochQuality> epochs{};  // of the complete ones
};

struct CheckpointFile {
  std::string name;
  std::size_t bytes = 0;
  std::string hash;  // see core/hash.h
};

constexpr int kCheckpointVersion = 2;  // 1 had no top-5 numbers

struct CheckpointManifest {
  std::string workload, network;
  TrainingProgress progress;
  int ranks = 1;
  std::size_t global_batch = 0;
  std::string optimizer;
  std::string real;  // type of the values: "f32"
  // What else decides how the run goes on, by name: parameters of the command line, "data_hash",
  // "build".
  std::map<std::string, std::string> run;
  std::string loss_scale;  // the device's state of it, hexadecimal; empty: none
  std::string created_at;  // UTC
  std::vector<CheckpointFile> files;

  std::string json() const;
};

// Every value is checked before it is used. Throws input naming `where` and the key; a newer
// version says so.
CheckpointManifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace paceline
