// Plays a GPU on the host, so that the CUDA device's program, memory and graphs are tested where
// there is none: kernels run thread by thread, streams run as they are queued, device memory is the
// host's.
#pragma once

#include <memory>

#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// What a test wants to know.
struct HostCounts {
  std::size_t kernels = 0, captures = 0, graph_launches = 0;
  std::size_t allocations = 0;
};

// `counts` outlives it; may be null.
std::unique_ptr<Runtime> make_host_runtime(HostCounts* counts = nullptr);

// Naive loops over the operands, rounded as a GPU's are: factors as they are stored, sums in fp32.
// `runtime` outlives it. Without `epilogues` it refuses products that have one.
std::unique_ptr<Products> make_host_products(Runtime& runtime, bool epilogues = true);

}  // namespace paceline::cuda
