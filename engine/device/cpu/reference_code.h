// Detects layers that oneDNN's reference code runs. oneDNN has fast kernels only for some CPUs.
// Elsewhere its reference code is correct but slow, so users get a warning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::cpu {

#if defined(__x86_64__)
constexpr bool kGeneratesProducts = true;
#else
constexpr bool kGeneratesProducts = false;
#endif

// Whether a kernel of this name ("ref:any", "gemm:ref", "brg:avx512_core") is reference code.
// oneDNN calls its general matrix product "gemm:jit" everywhere; it counts unless
// `generates_products`.
bool is_reference_code(std::string_view kernel, bool generates_products = kGeneratesProducts);

struct LayerKernels {
  std::string layer;
  std::vector<std::string> kernels;  // oneDNN's names; empty ones are ignored
};

// One line naming layers and kernels. Empty if reference code runs none of them.
std::string reference_code_warning(const std::vector<LayerKernels>& layers,
                                   bool generates_products = kGeneratesProducts);

}  // namespace paceline::cpu
