// Matrix tiles (AMX), for the probe only: products with them are oneDNN's.
#pragma once

#include <cstddef>

namespace paceline::cpu {

#if defined(__x86_64__)

// Multiplies tiles of bf16 in registers, as fast as the CPU can. Call it only where
// library_has_amx(): oneDNN has asked the system for tiles then. Returns the number of operations.
double multiply_add_tiles(std::size_t rounds);

#endif

}  // namespace paceline::cpu
