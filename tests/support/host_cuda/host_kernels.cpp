// Runs kernels as they are compiled for the host.
#include "tests/support/host_cuda/host_table.h"
// Declares the tables that are joined here, of the type above.
#include "engine/device/cuda/kernels/table.h"
#include "tests/support/host_cuda/kernel_player.h"

namespace paceline::cuda {

const std::map<std::type_index, HostKernel>& host_kernels() {
  static const HostTable kTable = make_kernel_table();
  return kTable.kernels;
}

namespace {

class HostKernelPlayer final : public KernelPlayer {
 public:
  bool knows(std::type_index kernel) const override { return host_kernels().contains(kernel); }
  void run(std::type_index kernel, const void* parameters, std::size_t, const Grid& grid,
           HostBlock& stacks) override {
    host_kernels().at(kernel).run(parameters, grid, stacks);
  }
};

}  // namespace

std::shared_ptr<KernelPlayer> make_kernel_player() {
  return std::make_shared<HostKernelPlayer>();
}

}  // namespace paceline::cuda
