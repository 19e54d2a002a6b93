// Which extensions of the instruction set the compiler was allowed to use everywhere (CXXFLAGS with
// -march=native, say). Files that choose at run time are not among them.
#pragma once

namespace paceline {

enum CpuExtension : unsigned {
  kSse42 = 1,
  kAvx = 2,
  kAvx2 = 4,
  kFma = 8,
  kAvx512f = 16,
  kAvx512vl = 32,
  kAvx5124fmaps = 64,  // Knights Mill alone has it
  kAtomics = 128,      // aarch64 from here on
  kSve = 256,
  kSve2 = 512,
  kArmBf16 = 1024,
};

extern const unsigned kCpuNeeds;

}  // namespace paceline
