#include "engine/device/cpu/kernels.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::cpu {

namespace baseline {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace avx512bf16 {
extern const Kernels kKernels;
}
#elif defined(__aarch64__)
namespace sve {
extern const Kernels kKernels;
}
#endif

namespace {

#if defined(__aarch64__)
int sve_bytes() {
  if ((getauxval(AT_HWCAP) & HWCAP_SVE) == 0) return 0;
  const int answer = prctl(PR_SVE_GET_VL);
  return answer < 0 ? 0 : answer & PR_SVE_VL_LEN_MASK;
}
#endif

std::vector<const Kernels*> kernels_here() {
  std::vector<const Kernels*> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    if (__builtin_cpu_supports("avx512bf16")) sets.push_back(&avx512bf16::kKernels);
    sets.push_back(&avx512::kKernels);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    sets.push_back(&avx2::kKernels);
#endif
  sets.push_back(&baseline::kKernels);
#if defined(__aarch64__)
  // The baseline is NEON: where SVE's vectors are no longer than its (Grace), predicates gain
  // nothing.
  constexpr int kNeonBytes = 16;
  if (sve_bytes() > kNeonBytes) {
    sets.insert(sets.begin(), &sve::kKernels);
  } else if (sve_bytes() > 0) {
    sets.push_back(&sve::kKernels);
  }
#endif
  return sets;
}

}  // namespace

std::vector<std::string_view> instruction_sets_here() {
  std::vector<std::string_view> names;
  for (const Kernels* kernels : kernels_here()) names.emplace_back(kernels->isa);
  return names;
}

const Kernels& kernels_for(std::string_view wanted) {
  std::vector<std::string> names;
  for (const Kernels* kernels : kernels_here()) {
    if (wanted.empty() || wanted == kernels->isa) return *kernels;
    names.emplace_back(kernels->isa);
  }
  throw Error(ErrorKind::usage, "this CPU does not have instruction set " + std::string(wanted),
              "PACELINE_ISA", "choose one of: " + join(names, ", "));
}

}  // namespace paceline::cpu
