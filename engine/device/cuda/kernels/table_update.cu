#include "engine/device/cuda/kernels/table.h"
#include "engine/device/cuda/kernels/update.h"

namespace paceline::cuda {

template <typename T>
using UpdateEach = Update<T, false>;
template <typename T>
using UpdateVectors = Update<T, true>;

void add_update(KernelTable& table) {
  add_for_planes<WidenGradients, UpdateEach, UpdateVectors, ReorderWeights, RestoreGradients>(
      table);
  table.add<SetRule, FindInfinite, SquareSums, FindClipFactor, AdjustScale>();
}

}  // namespace paceline::cuda
