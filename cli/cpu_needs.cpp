#include "cli/cpu_needs.h"

namespace paceline {

const unsigned kCpuNeeds = 0
#ifdef __SSE4_2__
                           | kSse42
#endif
#ifdef __AVX__
                           | kAvx
#endif
#ifdef __AVX2__
                           | kAvx2
#endif
#ifdef __FMA__
                           | kFma
#endif
#ifdef __AVX512F__
                           | kAvx512f
#endif
#ifdef __AVX512VL__
                           | kAvx512vl
#endif
#ifdef __AVX5124FMAPS__
                           | kAvx5124fmaps
#endif
#ifdef __ARM_FEATURE_ATOMICS
                           | kAtomics
#endif
#ifdef __ARM_FEATURE_SVE
                           | kSve
#endif
#ifdef __ARM_FEATURE_SVE2
                           | kSve2
#endif
#ifdef __ARM_FEATURE_BF16
                           | kArmBf16
#endif
    ;

}  // namespace paceline
