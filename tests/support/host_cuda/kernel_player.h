// Runs the kernels of a HostRuntime. A program links one of two: host_kernels.cpp runs them as they
// are compiled for the host; ptx/ptx_kernels.cpp runs what is compiled for the card.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <typeindex>

#include "engine/device/cuda/runtime.h"
#include "tests/support/host_cuda/block.h"

namespace paceline::cuda {

class KernelPlayer {
 public:
  virtual ~KernelPlayer() = default;
  // Whether there is such a kernel.
  virtual bool knows(std::type_index kernel) const = 0;
  // On the calling thread, which lends its stacks.
  virtual void run(std::type_index kernel, const void* parameters, std::size_t bytes,
                   const Grid& grid, HostBlock& stacks) = 0;
  // Device memory, which is what kernels may touch.
  virtual void allocated(const void*, std::size_t) {}
  virtual void released(const void*) {}
};

std::shared_ptr<KernelPlayer> make_kernel_player();

}  // namespace paceline::cuda
