#pragma once

#include "engine/device/cpu/kernels.h"
#include "tests/bench/bound.h"

namespace paceline::bench {

// Fused multiply-adds in registers, with the instruction set that the cpu device takes
// (PACELINE_ISA, or the best) and on one thread. An operation is a multiplication or an addition.
class FmaBound final : public Bound {
 public:
  FmaBound();
  double run() override;

 private:
  const cpu::Kernels& kernels_;
};

}  // namespace paceline::bench
