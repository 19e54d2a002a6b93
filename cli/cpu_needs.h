// Instruction-set extensions that the compiler could use in all files (e.g. CXXFLAGS with
// -march=native). Excludes files that are selected at run time.
#pragma once

namespace paceline {

enum CpuExtension : unsigned {
  kSse42 = 1,
  kAvx = 2,
  kAvx2 = 4,
  kFma = 8,
  kAvx512f = 16,
  kAvx512vl = 32,
  kAvx5124fmaps = 64,  // Knights Mill only
  kAtomics = 128,      // aarch64 flags start here
  kSve = 256,
  kSve2 = 512,
  kArmBf16 = 1024,
};

extern const unsigned kCpuNeeds;

}  // namespace paceline
