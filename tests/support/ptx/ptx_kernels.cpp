// Kernels as they are compiled for the card: the PTX of kernels/table_*.cu.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/support/host_cuda/kernel_player.h"
#include "tests/support/order_seed.h"
#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/product.h"

namespace paceline::ptx {

const std::string& product_text() {
  static const std::string kText = [] {
    std::ostringstream text;
    for (const std::string& name : split(PACELINE_PTX, ':')) {
      std::ifstream file(name, std::ios::binary);
      text << file.rdbuf();
      if (!file) throw Error(ErrorKind::input, "cannot be read", name);
    }
    return text.str();
  }();
  return kText;
}

const PtxModule& product_module() {
  static const PtxModule kModule(product_text());
  return kModule;
}

}  // namespace paceline::ptx

namespace paceline::cuda {

namespace {

using ptx::LiveMemory;

class PtxKernelPlayer final : public KernelPlayer {
 public:
  bool knows(std::type_index kernel) const override {
    return ptx::product_module().find(ptx::readable_name(kernel.name())) != nullptr;
  }
  void run(std::type_index kernel, const void* parameters, std::size_t bytes, const Grid& grid,
           HostBlock&) override {
    const ptx::PtxModule& module = ptx::product_module();
    const ptx::PtxKernel& code = *module.find(ptx::readable_name(kernel.name()));
    std::vector<LiveMemory> live;
    std::mt19937 order;
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [first, size] : live_) live.push_back({first, size});
      order.seed(order_());
    }
    const ptx::PtxLaunch launch{grid.blocks, grid.threads, grid.shared_bytes, parameters, bytes};
    const ptx::PtxOutcome outcome = run_ptx(module, code, launch, live, order);
    if (outcome.faults.empty()) return;
    throw Error(ErrorKind::internal, outcome.faults.front(), "a kernel's PTX",
                fmt::format("PACELINE_SEED={} repeats it", order_seed()));
  }
  void allocated(const void* data, std::size_t bytes) override {
    const std::scoped_lock lock(mutex_);
    live_[reinterpret_cast<std::uintptr_t>(data)] = bytes;
  }
  void released(const void* data) override {
    const std::scoped_lock lock(mutex_);
    live_.erase(reinterpret_cast<std::uintptr_t>(data));
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> live_;
  std::mt19937_64 order_{order_seed()};
};

}  // namespace

std::shared_ptr<KernelPlayer> make_kernel_player() {
  return std::make_shared<PtxKernelPlayer>();
}

}  // namespace paceline::cuda
