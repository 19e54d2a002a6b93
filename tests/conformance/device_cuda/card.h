// What these tests need of a GPU: memory, a stream, a graph.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/no_card.h"

namespace paceline::cuda {

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

class CardMemory {
 public:
  explicit CardMemory(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, bytes > 0 ? bytes : 1));
  }
  ~CardMemory() { cudaFree(data_); }
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;

  void* data() const { return data_; }
  // Both are over when they return, also for streams that do not wait for CUDA's own.
  void poison() {
    check(cudaMemset(data_, 0xff, bytes_));  // NaN in every type
    check(cudaDeviceSynchronize());
  }
  void write(const std::vector<std::byte>& from) {
    check(cudaMemcpy(data_, from.data(), from.size(), cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> to(bytes_);
    check(cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

class CardStream {
 public:
  using Work = std::function<void(void*)>;

  CardStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CardStream() { cudaStreamDestroy(stream_); }
  CardStream(const CardStream&) = delete;
  CardStream& operator=(const CardStream&) = delete;

  void run(const Work& work) {
    work(stream_);
    check(cudaStreamSynchronize(stream_));
  }

  void run_as_graph(const Work& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    try {
      work(stream_);
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphLaunch(executable, stream_));
    check(cudaStreamSynchronize(stream_));
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace paceline::cuda
