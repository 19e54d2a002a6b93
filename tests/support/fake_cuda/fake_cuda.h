// The functions of the CUDA runtime that gpu_runtime.cpp calls, on the host and strict, so that it
// runs where no card is. Link it in the place of libcudart.
//
// It is as unkind as CUDA's documentation permits: work runs when somebody waits for it, and not
// before; pageable memory is read then, too; nodes of a graph run in a random order that their
// edges allow; new memory holds garbage; the current device is each thread's own; a capture forbids
// its thread what may be unsafe; an error of a kernel stays.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/device/cuda/runtime.h"

namespace paceline::fake_cuda {

struct Card {
  std::string name = "NVIDIA H200";
  int major = 9, minor = 0, multiprocessors = 3;
  std::size_t memory_bytes = std::size_t{1} << 30;
  bool exclusive = false;  // and another process has it
};

struct Machine {
  std::vector<Card> cards = {{}, {}};
  int driver = CUDART_VERSION;      // 0: none
  cudaError_t count = cudaSuccess;  // what cudaGetDeviceCount says
};

// Forgets everything, what still lives included.
void reset(const Machine& machine = {});

// Its address is what cudaLaunchKernel takes for a function.
struct Kernel {
  std::size_t parameter_bytes;
  std::function<void(const void* parameters, const cuda::Grid& grid)> run;
  bool built = true;    // for this card
  bool loaded = false;  // by cudaFuncGetAttributes or a launch
  std::size_t most_shared_bytes = 48 << 10;
};

// The next call of this function fails, and does nothing: "cudaMalloc".
void fail(const std::string& function, cudaError_t error);
// The next kernel that runs on the card reads where it may not.
void break_next_kernel(int device);

struct Living {
  std::size_t streams = 0, events = 0, blocks = 0, registered = 0, graphs = 0, executables = 0;
  friend bool operator==(const Living&, const Living&) = default;
};
Living living();
// Is told each call, by its function's name, with the current device, and each kernel that runs on
// a device as "kernel".
void observe(std::function<void(const std::string& function, int device)> observer);
// The seconds that events say, in place of the host's.
void set_clock(std::function<double()> clock);
// What CUDA would not report, and what may end in anything: "a copy of memory that is freed".
std::vector<std::string> complaints();

int stream_priority(cudaStream_t stream);
unsigned find_flags(cudaStream_t stream);
unsigned find_flags(cudaEvent_t event);
unsigned device_flags(int device);
bool is_registered(const void* data);

}  // namespace paceline::fake_cuda
