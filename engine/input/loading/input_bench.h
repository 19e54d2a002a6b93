// Measures how fast threads turn a data set's files into batches.
#pragma once

#include <vector>

#include "engine/input/decode/image.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

struct InputBenchOptions {
  ImageStore::Size size{300, 300, 3};
  InputOptions input;
  std::size_t samples = 0;  // of the split; 0: all
  std::size_t batch = 32;
  int threads = 0;        // of the feeder; 0: inline
  std::vector<int> cpus;  // of these threads
  Augmentation augment{};
  int epochs = 2;  // at least 2: the first one and cached ones
};

// One epoch through the feeder, without any other computation.
struct InputEpoch {
  double seconds = 0;  // from the first call to the last batch
  InputCounts counts;
  double ready_batches = 0;  // queue level, mean over steps
};

struct InputBench {
  std::size_t samples = 0;
  std::size_t encoded_bytes = 0, pixels = 0;  // of those samples
  // single-threaded, stage after stage.
  double read_seconds = 0, decode_seconds = 0, resize_seconds = 0;
  std::vector<InputEpoch> epochs;
  std::vector<std::size_t> bad_samples;
};

// First reads, decodes and resizes each sample once on the calling thread, timing each stage. Then
// runs whole epochs through the feeder, starting with an empty cache.
InputBench bench_input(const std::shared_ptr<const SampleSource>& source,
                       const InputBenchOptions& options);

}  // namespace paceline
