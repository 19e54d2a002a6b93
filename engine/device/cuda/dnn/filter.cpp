#include "engine/device/cuda/dnn/filter.h"

namespace paceline::cuda {

Support admits(const EngineRules& rules, const EngineNotes& notes) {
  if (notes.reorders_filter) return Support::no("wants reordered weights");
  if (notes.narrow_sums) return Support::no("sums in less than fp32");
  if (notes.converts_inputs) return Support::no("converts its inputs to a narrower type");
  if (rules.math == Math::fp32) {
    if (notes.tensor_cores) return Support::no("multiplies on tensor cores, in less than fp32");
    if (notes.large_winograd_tiles) return Support::no("loses digits in large Winograd tiles");
  } else if (notes.winograd || notes.fourier) {
    return Support::no("loses digits in a transform");
  }
  if (rules.deterministic && notes.varies) return Support::no("varies from run to run");
  if (notes.compiles && !rules.may_compile) return Support::no("is compiled at run time");
  return Support::yes();
}

}  // namespace paceline::cuda
