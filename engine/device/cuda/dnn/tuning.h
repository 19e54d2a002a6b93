// What choosing between ways to compute a product needs of a card. The CUDA device implements it.
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
  using Work = std::function<void(Stream)>;  // queues on the stream, and may throw

  virtual ~Tuner() = default;
  virtual std::string card() const = 0;  // "NVIDIA H200": choices are kept by this name
  // Memory of the card, aligned to 256 bytes, for as long as it is held. Throws usage where there
  // is not enough.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Uniform values in [-1, 1), or any bytes where the type is u8; there before anything that is
  // queued later reads them.
  virtual void randomize(void* memory, std::size_t elements, DType type) = 0;
  // Captures the work into a graph that is made executable and thrown away. An Error of the work
  // ends the capture and is a no.
  virtual Support capture(const Work& work) = 0;
  // Seconds of each of `runs` runs by events around it, after `warm_ups` runs that do not count;
  // before each, more is written than the card's cache holds. Returns when all is done.
  virtual std::vector<double> time(const Work& work, int warm_ups, int runs) = 0;
};

}  // namespace paceline::cuda
