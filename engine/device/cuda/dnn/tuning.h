// What the choice of algorithms needs from a card. The CUDA device implements it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/support.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

class Tuner {
 public:
  using Work = std::function<void(Stream)>;  // queues on the stream; may throw

  virtual ~Tuner() = default;
  virtual std::string card() const = 0;  // "NVIDIA H200": choices are stored under this name
  // GPU memory, aligned to 256 bytes, as long as the result exists. Throws usage if there is too
  // little.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Fills memory with uniform values in [-1, 1), or random bytes for u8, before anything queued
  // later reads it.
  virtual void randomize(void* memory, std::size_t elements, DType type) = 0;
  // Captures the work into an executable graph, which is then destroyed. An Error of the work ends
  // the capture and gives "no".
  virtual Support capture(const Work& work) = 0;
  // Seconds of each of `runs` runs, measured with events, after `warm_ups` additional runs.
  // Overwrites the card's cache before each run. Returns when everything is done.
  virtual std::vector<double> time(const Work& work, int warm_ups, int runs) = 0;
};

}  // namespace paceline::cuda
