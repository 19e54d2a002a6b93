// How fast one thread, or several, turn a data set's files into batches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/input/decode/augment.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

struct InputBenchOptions {
  ImageStore::Size size{300, 300, 3};
  InputOptions input;
  std::size_t samples = 0;  // of the split; 0: all
  std::size_t batch = 32;
  int threads = 0;        // of the feeder; 0: inline, in the thread that takes the batches
  std::vector<int> cpus;  // for these threads
  Augmentation augment{};
  int epochs = 2;  // at least 2: the first one and cached ones
};

// One epoch through the feeder, while nothing else computes.
struct InputEpoch {
  double seconds = 0;  // from the first call to the last batch
  InputCounts counts;
  double ready_batches = 0;  // mean over steps: the queue level
};

struct InputBench {
  std::size_t samples = 0;
  std::size_t encoded_bytes = 0, pixels = 0;                        // of those samples
  double read_seconds = 0, decode_seconds = 0, resize_seconds = 0;  // one thread, one after another
  std::vector<InputEpoch> epochs;
  std::vector<std::size_t> bad_samples;
};

// Each sample of `source` is read, decoded and resized once by the calling thread, a stage at a
// time so that each is timed; then the feeder takes over, with an empty cache, for whole epochs.
InputBench bench_input(const std::shared_ptr<const SampleSource>& source,
                       const InputBenchOptions& options);

}  // namespace paceline
