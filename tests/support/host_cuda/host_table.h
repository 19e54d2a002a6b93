// Kernels as they are compiled for the host: the tables of engine/device/cuda/kernels, made of
// functions that run the threads of a grid's blocks in turn. Included before a table_NAME.cu.
#pragma once

#include <map>
#include <typeindex>
#include <vector>

#include "engine/device/cuda/runtime.h"
#include "tests/support/host_cuda/block.h"

namespace paceline::cuda {

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

struct HostKernel {
  std::size_t parameter_bytes;
  void (*run)(const void* parameters, const Grid& grid, HostBlock& stacks);
};

struct HostTable {
  std::map<std::type_index, HostKernel> kernels;

  template <typename... Kernel>
  void add() {
    (kernels.emplace(typeid(Kernel), HostKernel{sizeof(Kernel), &run<Kernel>}), ...);
  }

 private:
  template <typename Kernel>
  static void run(const void* parameters, const Grid& grid, HostBlock& stacks) {
    const Kernel& kernel = *static_cast<const Kernel*>(parameters);
    for (unsigned block = 0; block < grid.blocks; ++block) {
      std::vector<double> shared(grid.shared_bytes / sizeof(double) + 1,
                                 -1e300);  // never counted on
      stacks.run(grid.threads, [&](unsigned t) {
        HostContext context{stacks, t,           grid.threads,
                            block,  grid.blocks, reinterpret_cast<unsigned char*>(shared.data())};
        kernel(context);
      });
    }
  }
};
using KernelTable = HostTable;

const std::map<std::type_index, HostKernel>& host_kernels();

}  // namespace paceline::cuda
