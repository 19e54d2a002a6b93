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

// x += s y in place, of which the bytes of x are read and written and those of y read: the triad of
// the STREAM benchmark for what updates its operands. A copy would not do, since it also fetches
// the lines that it overwrites, and an update in place outruns it.
class TriadBound final : public Bound {
 public:
  explicit TriadBound(std::size_t bytes_moved);
  double run() override;

 private:
  Memory x_, y_;
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
