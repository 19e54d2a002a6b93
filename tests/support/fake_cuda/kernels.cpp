// Our kernels on the host, as functions that the imitated cudaLaunchKernel runs.
#include <vector>

#include "engine/device/cuda/kernel_table.h"
#include "engine/device/cuda/kernels/all.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/host_cuda/block.h"

namespace paceline::cuda {

namespace {

struct FakeContext {
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
constexpr bool kMeets = false;
template <typename Row>
constexpr bool kMeets<ChannelSums<Row>> = true;
template <>
constexpr bool kMeets<SoftmaxLoss> = true;
template <>
constexpr bool kMeets<SquareSums> = true;
template <>
constexpr bool kMeets<FindClipFactor> = true;

template <typename Kernel>
void run(const void* parameters, unsigned blocks, unsigned threads, std::size_t shared_bytes) {
  static HostBlock host;  // whoever launches holds the imitation's lock
  const Kernel& kernel = *static_cast<const Kernel*>(parameters);
  for (unsigned block = blocks; block-- > 0;) {
    std::vector<double> shared(shared_bytes / sizeof(double) + 1, -1e300);  // never counted on
    const auto one = [&](unsigned thread) {
      FakeContext context{host,  thread, threads,
                          block, blocks, reinterpret_cast<unsigned char*>(shared.data())};
      kernel(context);
    };
    if constexpr (kMeets<Kernel>) {
      host.run(threads, one);
    } else {
      for (unsigned thread = 0; thread < threads; ++thread) one(thread);
    }
  }
}

struct CollectFakes {
  std::map<std::type_index, const void*>& kernels;
  template <typename Kernel>
  void visit() {
    static fake_cuda::Kernel one{sizeof(Kernel), &run<Kernel>};
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
