// Our kernels, as functions that the imitated cudaLaunchKernel runs.
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/all.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/host_cuda/kernel_player.h"

namespace paceline::cuda {

namespace {

void play(std::type_index kernel, const void* parameters, std::size_t bytes, const Grid& grid) {
  static const std::shared_ptr<KernelPlayer> player = make_kernel_player();
  static HostBlock stacks;  // whoever launches holds the imitation's lock
  player->run(kernel, parameters, bytes, grid, stacks);
}

struct CollectFakes {
  std::map<std::type_index, const void*>& kernels;
  template <typename Kernel>
  void visit() {
    static fake_cuda::Kernel one{sizeof(Kernel), [](const void* parameters, const Grid& grid) {
                                   play(typeid(Kernel), parameters, sizeof(Kernel), grid);
                                 }};
    kernels.emplace(typeid(Kernel), &one);
  }
};

}  // namespace

std::map<std::type_index, const void*> device_kernels() {
  std::map<std::type_index, const void*> kernels;
  for_each_kernel(CollectFakes{kernels});
  return kernels;
}

}  // namespace paceline::cuda
