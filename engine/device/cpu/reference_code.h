// oneDNN has fast kernels for some kinds of CPU only. Elsewhere its reference code runs a layer:
// right, but slowly, which has to be said.
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

// Whether a kernel of this name ("ref:any", "gemm:ref", "brg:avx512_core") is such code. Without
// `generates_products` oneDNN's general product is, too, which it calls "gemm:jit" everywhere.
bool is_reference_code(std::string_view kernel, bool generates_products = kGeneratesProducts);

struct LayerKernels {
  std::string layer;
  std::vector<std::string> kernels;  // oneDNN's names; empty ones are ignored
};

// One line that names layers and kernels; empty if reference code runs none of them.
std::string reference_code_warning(const std::vector<LayerKernels>& layers,
                                   bool generates_products = kGeneratesProducts);

}  // namespace paceline::cpu
