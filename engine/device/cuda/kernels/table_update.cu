#include "engine/device/cuda/kernels/table.h"
#include "engine/device/cuda/kernels/update.h"

void paceline::cuda::add_update(KernelTable& table) {
  add_for_planes<WidenGradients, Update>(table);
  table.add<FitRows<float, float>, FitRows<Bf16, float>, FitRows<Half, float>, FitRows<float, Bf16>,
            FitRows<float, Half>, SetRule, FindInfinite, SquareSums, FindClipFactor, AdjustScale>();
}
