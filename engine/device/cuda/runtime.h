// What the device uses of the CUDA runtime, as an interface: on a card it is CUDA's own
// (gpu_runtime.cpp); tests run the same program on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>

#include "engine/core/memory.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

using Event = void*;  // cudaEvent_t

// Of two streams that both have work, the card takes blocks of the high one's first.
enum class StreamPriority { normal, high };

// Of one dimension: blocks of threads, and bytes of memory that a block's threads share.
struct Grid {
  unsigned blocks = 1, threads = 256;
  std::size_t shared_bytes = 0;
};

// Queued work, captured to be queued again as one.
class Graph {
 public:
  virtual ~Graph() = default;
  // Of launches from now on: what the `index`th record_in_graph() of its capture records.
  virtual void set_mark(std::size_t index, Event event) = 0;
  virtual void launch(Stream stream) = 0;
};

// All calls that take a stream queue on it and return; errors of queued work come out of
// synchronize_...(). Throws internal, naming the call, and usage where the card lacks memory.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string description() const = 0;  // "NVIDIA H200, driver 580.82, CUDA 13.0"
  virtual unsigned multiprocessors() const = 0;

  virtual Memory device_memory(std::size_t bytes) = 0;  // zero by then, for every stream
  virtual Memory pinned_memory(std::size_t bytes) = 0;  // zeroed, of the host
  virtual std::size_t free_bytes() const = 0;           // of the device

  virtual Stream make_stream(StreamPriority priority = StreamPriority::normal) = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool done(Event event) const = 0;
  virtual void synchronize_event(Event event) const = 0;
  virtual void synchronize_stream(Stream stream) = 0;
  virtual double seconds_between(Event begin, Event end) const = 0;  // both are done

  // Between host and device, in either direction.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void clear(void* data, std::size_t bytes, Stream stream) = 0;
  virtual void host_task(void (*task)(void*), void* argument, Stream stream) = 0;

  // A kernel of kernels/all.h; its parameters are copied.
  template <typename Kernel>
  void launch(const Kernel& kernel, const Grid& grid, Stream stream) {
    launch_kernel(typeid(Kernel), &kernel, sizeof kernel, grid, stream);
  }

  // What is queued on `stream` between the two, and on streams that wait for it and that it waits
  // for again, is not run but becomes a graph.
  virtual void begin_capture(Stream stream) = 0;
  virtual std::unique_ptr<Graph> end_capture(Stream stream) = 0;
  virtual void cancel_capture(Stream stream) noexcept = 0;
  // While `stream` is captured record() only serves wait() within the capture. This is recorded
  // by each launch of the graph, for whoever looks from outside.
  virtual void record_in_graph(Event event, Stream stream) = 0;

 protected:
  virtual void launch_kernel(std::type_index kernel, const void* parameters, std::size_t bytes,
                             const Grid& grid, Stream stream) = 0;
};

}  // namespace paceline::cuda
