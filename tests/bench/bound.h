// What no work of its kind can outrun on this machine, to be measured beside it.
#pragma once

#include <cstddef>

#include "engine/core/memory.h"

namespace paceline::bench {

class Bound {
 public:
  virtual ~Bound() = default;
  // One call; returns how much it did: operations, bytes.
  virtual double run() = 0;
};

// memcpy between two blocks that together are as large as what the work reads and writes. Counts a
// byte read and a byte written as two.
class CopyBound final : public Bound {
 public:
  explicit CopyBound(std::size_t bytes_moved);
  double run() override;

 private:
  Memory from_, to_;
};

}  // namespace paceline::bench
