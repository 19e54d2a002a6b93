#include "engine/device/cpu/kernels.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/tiles.h"

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

struct InstructionSet {
  std::string_view name;
  const Kernels* kernels;
};

#if defined(__aarch64__)

int sve_bytes() {
  if ((getauxval(AT_HWCAP) & HWCAP_SVE) == 0) return 0;
  const int answer = prctl(PR_SVE_GET_VL);
  return answer < 0 ? 0 : answer & PR_SVE_VL_LEN_MASK;
}

std::vector<InstructionSet> sets_here() {
  const InstructionSet neon{"baseline", &baseline::kKernels}, sve{"sve", &sve::kKernels};
  // Where SVE's vectors are no longer than NEON's (Grace), predicates gain nothing.
  constexpr int kNeonBytes = 16;
  if (sve_bytes() > kNeonBytes) return {sve, neon};
  if (sve_bytes() > 0) return {neon, sve};
  return {neon};
}

#elif defined(__x86_64__)

// oneDNN multiplies with matrix tiles faster than any loop of ours without them.
const Kernels& amx_kernels() {
  static const Kernels kernels = [] {
    Kernels made = avx512bf16::kKernels;
    made.bf16_products = Bf16Products::tiles;
    made.product = {.multiply_add = multiply_add_tiles};
    made.winograd = {};
    made.pointwise = {};
    return made;
  }();
  return kernels;
}

// The rate of multiply-adds by pairs, fp32's being 1 (results/comparisons/cpus.md).
struct PairsRate {
  std::string_view vendor;
  double rate;
};
constexpr PairsRate kPairsRates[] = {{"AuthenticAMD", 1.8},   // Zen 4, Zen 5
                                     {"GenuineIntel", 0.5}};  // Sapphire and Emerald Rapids

// A CPU that nobody has measured widens, which is never much slower than fp32. The rule is a table,
// and not a measurement at each start, so that all ranks and all runs of a machine do the same.
bool pairs_pay(std::string_view vendor) {
  return std::ranges::any_of(
      kPairsRates, [&](const PairsRate& row) { return row.vendor == vendor && row.rate > 1; });
}

std::vector<InstructionSet> sets_for(const CpuTraits& cpu) {
  std::vector<InstructionSet> sets;
  const InstructionSet pairs{"avx512bf16", &avx512bf16::kKernels};
  const bool has_pairs = cpu.avx512 && cpu.pairs;
  if (has_pairs && cpu.tiles) sets.push_back({"amx", &amx_kernels()});
  if (has_pairs && pairs_pay(cpu.vendor)) sets.push_back(pairs);
  if (cpu.avx512) sets.push_back({"avx512", &avx512::kKernels});
  if (has_pairs && !pairs_pay(cpu.vendor)) sets.push_back(pairs);
  if (cpu.avx2) sets.push_back({"avx2", &avx2::kKernels});
  sets.push_back({"baseline", &baseline::kKernels});
  return sets;
}

CpuTraits traits_here() {
  CpuTraits cpu;
  if (__builtin_cpu_is("amd")) cpu.vendor = "AuthenticAMD";
  if (__builtin_cpu_is("intel")) cpu.vendor = "GenuineIntel";
  cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq");
  cpu.pairs = __builtin_cpu_supports("avx512bf16");
  cpu.tiles = library_has_amx();
  return cpu;
}

std::vector<InstructionSet> sets_here() {
  return sets_for(traits_here());
}

#else

std::vector<InstructionSet> sets_here() {
  return {{"baseline", &baseline::kKernels}};
}

#endif

std::vector<std::string_view> names(const std::vector<InstructionSet>& sets) {
  return mapped(sets, &InstructionSet::name);
}

}  // namespace

#if defined(__x86_64__)
std::vector<std::string_view> instruction_sets(const CpuTraits& cpu) {
  return names(sets_for(cpu));
}
#endif

std::vector<std::string_view> instruction_sets_here() {
  return names(sets_here());
}

const Kernels& kernels_for(std::string_view wanted) {
  std::vector<std::string> names;
  for (const InstructionSet& set : sets_here()) {
    if (wanted.empty() || wanted == set.name) return *set.kernels;
    names.emplace_back(set.name);
  }
  throw usage_error("this CPU does not have instruction set " + std::string(wanted), "PACELINE_ISA",
                    "choose one of: " + join(names, ", "));
}

}  // namespace paceline::cpu
