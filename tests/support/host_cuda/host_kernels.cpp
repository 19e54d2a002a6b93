// Kernels as they are compiled for the host.
#include <map>
#include <vector>

#include "engine/device/cuda/kernels/all.h"
#include "tests/support/host_cuda/block.h"
#include "tests/support/host_cuda/kernel_player.h"

namespace paceline::cuda {

namespace {

struct HostContext {
  HostBlock& host;
  unsigned thread_, threads_, block_, blocks_;
  unsigned char* memory;

  unsigned thread() const { return thread_; }
  unsigned threads() const { return threads_; }
  unsigned block() const { return block_; }
  unsigned blocks() const { return blocks_; }
  void sync() const { host.sync(); }
  void fence() const {}
  unsigned add_one(unsigned* counter) const { return (*counter)++; }
  template <typename T>
  T* shared() const {
    return reinterpret_cast<T*>(memory);
  }
};

// Whether a kernel's threads wait for each other; the others need no stacks.
template <typename Kernel>
constexpr bool kWaits = false;
template <typename Row>
constexpr bool kWaits<ChannelSums<Row>> = true;
template <typename T>
constexpr bool kWaits<Compare<T>> = true;
template <>
constexpr bool kWaits<SoftmaxLoss> = true;
template <typename T>
constexpr bool kWaits<TokenLoss<T>> = true;
template <>
constexpr bool kWaits<TokenOrder> = true;
template <typename T>
constexpr bool kWaits<LayerNorm<T>> = true;
template <typename T>
constexpr bool kWaits<LayerNormGradient<T>> = true;
template <typename T, int W>
constexpr bool kWaits<Attention<T, W>> = true;
template <typename T, int W>
constexpr bool kWaits<AttentionQueryGradient<T, W>> = true;
template <typename T, int W, bool V>
constexpr bool kWaits<AttentionKeyGradient<T, W, V>> = true;
template <>
constexpr bool kWaits<SquareSums> = true;
template <>
constexpr bool kWaits<FindClipFactor> = true;

template <typename Kernel>
void run_on_host(const void* parameters, const Grid& grid, HostBlock& host) {
  const Kernel& kernel = *static_cast<const Kernel*>(parameters);
  for (unsigned block = 0; block < grid.blocks; ++block) {
    std::vector<double> shared(grid.shared_bytes / sizeof(double) + 1, -1e300);  // never counted on
    const auto thread = [&](unsigned t) {
      HostContext context{host,  t,           grid.threads,
                          block, grid.blocks, reinterpret_cast<unsigned char*>(shared.data())};
      kernel(context);
    };
    if constexpr (kWaits<Kernel>) {
      host.run(grid.threads, thread);
    } else {
      for (unsigned t = 0; t < grid.threads; ++t) thread(t);
    }
  }
}

using HostKernels = std::map<std::type_index, void (*)(const void*, const Grid&, HostBlock&)>;

struct Collect {
  HostKernels& kernels;
  template <typename Kernel>
  void visit() {
    kernels.emplace(typeid(Kernel), &run_on_host<Kernel>);
  }
};

HostKernels all_kernels() {
  HostKernels kernels;
  for_each_kernel(Collect{kernels});
  return kernels;
}

class HostKernelPlayer final : public KernelPlayer {
 public:
  bool knows(std::type_index kernel) const override { return kernels_.count(kernel) > 0; }
  void run(std::type_index kernel, const void* parameters, std::size_t, const Grid& grid,
           HostBlock& stacks) override {
    kernels_.at(kernel)(parameters, grid, stacks);
  }

 private:
  const HostKernels kernels_ = all_kernels();
};

}  // namespace

std::shared_ptr<KernelPlayer> make_kernel_player() {
  return std::make_shared<HostKernelPlayer>();
}

}  // namespace paceline::cuda
