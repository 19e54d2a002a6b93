// Runs a kernel's PTX on the host and reports what a card would do without a word: global accesses
// outside of live memory or off their alignment; in shared memory accesses outside of it, races
// (two threads between the same barriers, one of them writing) and reads of what nobody wrote;
// barriers that not all threads of a block come to. Blocks start in random order, and several are
// under way at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/ptx/module.h"

namespace paceline::ptx {

// Memory that kernels may touch.
struct LiveMemory {
  std::uintptr_t first = 0;
  std::size_t bytes = 0;
};

struct PtxLaunch {
  unsigned blocks = 1, threads = 1;
  std::size_t shared_bytes = 0;
  const void* parameters = nullptr;
  std::size_t parameter_bytes = 0;
};

struct PtxOutcome {
  std::vector<std::string> faults;  // the first few
  std::uint64_t instructions = 0;   // of all threads
};

// `live` in the order of addresses.
PtxOutcome run_ptx(const PtxModule& module, const PtxKernel& kernel, const PtxLaunch& launch,
                   std::span<const LiveMemory> live, std::mt19937& order);

}  // namespace paceline::ptx
