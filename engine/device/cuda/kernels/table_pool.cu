#include "engine/device/cuda/kernels/pool.h"
#include "engine/device/cuda/kernels/table.h"

void paceline::cuda::add_pool(KernelTable& table) {
  add_for_planes<MaxPool, MaxPoolBackward, AveragePool, AveragePoolBackward, AveragePoolByVector>(
      table);
}
