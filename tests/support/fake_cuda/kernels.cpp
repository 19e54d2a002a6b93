// Our kernels, as functions that the imitated cudaLaunchKernel runs.
#include "engine/device/cuda/gpu_runtime.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/host_cuda/host_table.h"

namespace paceline::cuda {

namespace {

std::map<std::type_index, fake_cuda::Kernel> make_fakes() {
  std::map<std::type_index, fake_cuda::Kernel> fakes;
  for (const auto& [type, kernel] : host_kernels()) {
    fakes.emplace(type,
                  fake_cuda::Kernel{kernel.parameter_bytes,
                                    [run = kernel.run](const void* parameters, const Grid& grid) {
                                      // Whoever launches holds the imitation's lock.
                                      static HostBlock stacks;
                                      run(parameters, grid, stacks);
                                    }});
  }
  return fakes;
}

}  // namespace

std::map<std::type_index, const void*> device_kernels() {
  static std::map<std::type_index, fake_cuda::Kernel> fakes = make_fakes();
  std::map<std::type_index, const void*> kernels;
  for (auto& [type, kernel] : fakes) kernels.emplace(type, &kernel);
  return kernels;
}

}  // namespace paceline::cuda
