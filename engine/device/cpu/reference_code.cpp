#include "engine/device/cpu/reference_code.h"

#include <fmt/format.h>

#include <set>

#include "engine/core/text.h"

namespace paceline::cpu {

bool is_reference_code(std::string_view kernel, bool generates_products) {
  if (!generates_products && kernel == "gemm:jit") return true;
  return kernel.substr(0, 3) == "ref" || kernel.find(":ref") != std::string_view::npos;
}

std::string reference_code_warning(const std::vector<LayerKernels>& layers,
                                   bool generates_products) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> names;
  std::set<std::string> found;
  for (const LayerKernels& layer : layers) {
    bool any = false;
    for (const std::string& kernel : layer.kernels) {
      if (!is_reference_code(kernel, generates_products)) continue;
      found.insert(kernel);
      any = true;
    }
    if (any) names.push_back(layer.layer);
  }
  if (names.empty()) return "";
  if (names.size() > kNamed + 1) {
    const std::size_t others = names.size() - kNamed;
    names.resize(kNamed);
    names.push_back(fmt::format("{} others", others));
  }
  return fmt::format(
      "oneDNN has no fast kernel on this kind of CPU for {}: its reference code ({}) "
      "computes right, but slowly; install a oneDNN with the Arm Compute Library",
      join(names, ", "), join({found.begin(), found.end()}, ", "));
}

}  // namespace paceline::cpu
