// The part of the CUDA runtime that the device uses, as an interface. On a card it is CUDA's own
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

// If two streams have work, the card takes blocks of the high one first.
enum class StreamPriority { normal, high };

// One-dimensional: number of blocks and threads, and shared memory per block in bytes.
struct Grid {
  unsigned blocks = 1, threads = 256;
  std::size_t shared_bytes = 0;
};

// Captured work, which can be launched as a unit.
class Graph {
 public:
  virtual ~Graph() = default;
  // From now on, each launch records `event` at the capture's `index`th record_in_graph().
  virtual void set_mark(std::size_t index, Event event) = 0;
  virtual void launch(Stream stream) = 0;
};

// Calls with a stream queue on it and return; synchronize_...() throws the errors of queued work.
// Throws internal naming the call, and usage if GPU memory is exhausted.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string description() const = 0;  // "NVIDIA H200, driver 580.82, CUDA 13.0"
  virtual unsigned multiprocessors() const = 0;

  // Zeroed before any later work on any stream.
  virtual Memory device_memory(std::size_t bytes) = 0;
  virtual Memory pinned_memory(std::size_t bytes) = 0;  // zeroed host memory
  virtual std::size_t free_bytes() const = 0;           // of the device
  // Pins memory of the host that somebody else allocated, until the result is gone. Empty if it
  // cannot: copies are slower then, and right.
  virtual Memory pin(void*, std::size_t) { return {}; }

  virtual Stream make_stream(StreamPriority priority = StreamPriority::normal) = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool done(Event event) const = 0;
  virtual void synchronize_event(Event event) const = 0;
  virtual void synchronize_stream(Stream stream) = 0;
  virtual double seconds_between(Event begin, Event end) const = 0;  // both must be done

  // In either direction.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void fill(void* data, unsigned char byte, std::size_t bytes, Stream stream) = 0;
  virtual void host_task(void (*task)(void*), void* argument, Stream stream) = 0;

  // Names what this thread queues from begin to end, for profilers.
  virtual void begin_range(const std::string&) {}
  virtual void end_range() noexcept {}

  // A kernel of a table (kernels/table.h). Its parameters are copied.
  template <typename Kernel>
  void launch(const Kernel& kernel, const Grid& grid, Stream stream) {
    launch_kernel(typeid(Kernel), &kernel, sizeof kernel, grid, stream);
  }

  // Between begin and end, work on `stream`, and on streams that it waits for and that wait for it,
  // is not run but added to a graph.
  virtual void begin_capture(Stream stream) = 0;
  virtual std::unique_ptr<Graph> end_capture(Stream stream) = 0;
  virtual void cancel_capture(Stream stream) noexcept = 0;
  // During a capture, record() only serves wait() within the capture. This event is recorded by
  // each launch of the graph, for observers outside of it.
  virtual void record_in_graph(Event event, Stream stream) = 0;

 protected:
  virtual void launch_kernel(std::type_index kernel, const void* parameters, std::size_t bytes,
                             const Grid& grid, Stream stream) = 0;
};

class ProfilerRange {
 public:
  ProfilerRange(Runtime& runtime, const std::string& name) : runtime_(runtime) {
    runtime_.begin_range(name);
  }
  ~ProfilerRange() { runtime_.end_range(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  Runtime& runtime_;
};

class OwnedEvent {
 public:
  explicit OwnedEvent(Runtime& runtime) : runtime_(runtime), event_(runtime.make_event()) {}
  ~OwnedEvent() { runtime_.destroy_event(event_); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  operator Event() const { return event_; }  // NOLINT: implicit, as it is one

 private:
  Runtime& runtime_;
  Event event_;
};

}  // namespace paceline::cuda
