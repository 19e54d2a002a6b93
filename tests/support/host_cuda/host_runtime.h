// Plays a GPU on the host, so that the CUDA device's program, memory and graphs are tested where
// there is none: kernels run thread by thread, device memory is the host's. It is as unkind as CUDA
// permits: work runs when somebody waits for it, and nodes of a graph in any order that its edges
// allow.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// What a test wants to know. Read it where nothing runs.
struct HostCounts {
  std::size_t kernels = 0, captures = 0, graph_launches = 0;
  std::size_t allocations = 0, waits = 0;          // of streams for events
  std::size_t device_bytes = 0;                    // that are allocated now
  std::map<std::string, std::size_t> ranges = {};  // for profilers, by name
  int open_ranges = 0;
};

// One call that fails, of CUDA or of a library for products.
struct HostFault {
  std::size_t at = 0;     // its number, from 1 on; 0: none
  std::string only = {};  // of these calls, instead of all
  std::atomic<std::size_t> calls{0};
  std::string failed = {};  // its name, once it did
  bool now(const char* call) {
    if (!only.empty() && only != call) return false;
    if (++calls != at) return false;
    failed = call;
    return true;
  }
};

struct HostOptions {
  HostCounts* counts = nullptr;                     // outlives the runtime
  std::size_t memory_bytes = std::size_t{1} << 40;  // of the device
  std::size_t most_queued = 1024;                   // on a stream; who queues more runs the first
  bool threads = false;                             // a stream has one, which runs what it can
  HostFault* fault = nullptr;                       // outlives the runtime
};

std::unique_ptr<Runtime> make_host_runtime(const HostOptions& options);
// With PACELINE_EMULATED_THREADS=1 in the environment, with threads.
std::unique_ptr<Runtime> make_host_runtime(HostCounts* counts = nullptr);

StreamPriority stream_priority(Stream stream);  // of an emulated one

// Naive loops over the operands, rounded as a GPU's are: factors as they are stored, sums in fp32.
// `runtime` outlives it. Without `epilogues` it refuses products that have one, and measures
// nothing; with them the last of our own ways is the fastest, and a convolution with fewer
// multiply-adds.
std::unique_ptr<Products> make_host_products(Runtime& runtime, bool epilogues = true,
                                             HostFault* fault = nullptr);

}  // namespace paceline::cuda
