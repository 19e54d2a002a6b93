// What plays a CUDA stream between a test's lane and fake libraries: an ordered queue that runs
// work on a thread of its own. "Device memory" is then host memory.
#pragma once

#include <functional>

#include "engine/core/lane.h"

namespace paceline {

// Behind the void* that a fake library is given as cudaStream_t. No C++ types: it crosses into a
// library that is opened at run time.
struct FakeStream {
  void (*enqueue)(FakeStream* stream, void (*work)(void*), void* argument);
  bool (*captures)(FakeStream* stream);  // now; null: never
  // Calls `release` once the graph that is being captured is gone.
  void (*retain)(FakeStream* stream, void (*release)(void*), void* argument);
};

class StreamLane final : public Lane {
 public:
  StreamLane() : stream_{{&enqueue, nullptr, nullptr}, &thread_} {}

  void submit(HostTask task) override { thread_.submit(task); }
  Marker mark() override { return thread_.mark(); }
  void after(Marker marker) override { thread_.after(marker); }
  bool reached(Marker marker) const override { return thread_.reached(marker); }
  void drain() override { thread_.drain(); }
  bool is_inline() const override { return false; }
  void wait_for(Marker marker) const override { thread_.wait_for(marker); }
  void* native() override { return static_cast<FakeStream*>(&stream_); }

 private:
  struct Stream : FakeStream {
    Stream(FakeStream base, Lane* lane) : FakeStream(base), lane(lane) {}
    Lane* lane;
  };
  static void enqueue(FakeStream* stream, void (*work)(void*), void* argument) {
    static_cast<Stream*>(stream)->lane->submit([work, argument] { work(argument); });
  }

  ThreadLane thread_;
  Stream stream_;
};

}  // namespace paceline
