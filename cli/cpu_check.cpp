// A program that was built for a newer CPU would die of an illegal instruction, perhaps before
// main(): this runs first and says so in one line. Compiled for any CPU of the family, with nothing
// but libc.
#include <unistd.h>

#include <cstring>

#include "cli/cpu_needs.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#pragma GCC target("arch=armv8-a")
#endif

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

#if defined(__x86_64__)
const char* missing() {
  using namespace paceline;
  const unsigned needs = kCpuNeeds;
  __builtin_cpu_init();
  if ((needs & kSse42) && !__builtin_cpu_supports("sse4.2")) return "SSE4.2";
  if ((needs & kAvx) && !__builtin_cpu_supports("avx")) return "AVX";
  if ((needs & kAvx2) && !__builtin_cpu_supports("avx2")) return "AVX2";
  if ((needs & kFma) && !__builtin_cpu_supports("fma")) return "FMA";
  if ((needs & kAvx512f) && !__builtin_cpu_supports("avx512f")) return "AVX-512";
  if ((needs & kAvx512vl) && !__builtin_cpu_supports("avx512vl")) return "AVX-512VL";
  if ((needs & kAvx5124fmaps) && !__builtin_cpu_supports("avx5124fmaps")) return "AVX-512 4FMAPS";
  return nullptr;
}
#else
const char* missing() {
  using namespace paceline;
  const unsigned needs = kCpuNeeds;
  const unsigned long has = getauxval(AT_HWCAP), also = getauxval(AT_HWCAP2);
  if ((needs & kAtomics) && !(has & HWCAP_ATOMICS)) return "LSE atomics";
  if ((needs & kSve) && !(has & HWCAP_SVE)) return "SVE";
  if ((needs & kSve2) && !(also & HWCAP2_SVE2)) return "SVE2";
  if ((needs & kArmBf16) && !(also & HWCAP2_BF16)) return "BF16";
  return nullptr;
}
#endif

// Before the constructors of all other files of this program.
__attribute__((constructor(101))) void check_cpu() {
  const char* extension = missing();
  if (!extension) return;
  say("paceline: this program was built for a CPU with ");
  say(extension);
  say(", which this one has not; build it on this kind of node (sbatch slurm/build.job), or "
      "without "
      "-march and -mcpu\n");
  _exit(64);
}

}  // namespace

#endif
