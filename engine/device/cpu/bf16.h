// bfloat16 as it lies in memory: the upper half of a float.
#pragma once

#include <cstdint>

namespace paceline::cpu {

struct Bf16 {
  std::uint16_t bits = 0;
};

}  // namespace paceline::cpu
