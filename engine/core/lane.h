// A lane is an ordered queue of work with markers, the only concurrency primitive. On a CPU it is a
// host thread, or inline (work runs when it is queued). On a GPU it is a stream.
//
//   compute lane : forward | backward to G0 | backward to G1 | after R0: update 0 | ...
//   comm lane    :            after G0: all-reduce 0 | after G1: all-reduce 1
//
// Queuing never allocates. Errors of queued work are kept, and thrown by the next drain().
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace paceline {

class Lane;

// A position in a lane, reached when all work queued before it is done.
struct Marker {
  const Lane* lane = nullptr;
  std::uint64_t position = 0;
};

// A small trivially copyable callable, stored in place so that queuing does not allocate.
class HostTask {
 public:
  template <typename Callable>
  HostTask(Callable callable) {  // NOLINT: implicit, so that a lambda can be passed
    static_assert(std::is_trivially_copyable_v<Callable> && sizeof(Callable) <= kBytes);
    new (storage_.data()) Callable(callable);
    run_ = [](void* storage) { (*static_cast<Callable*>(storage))(); };
  }
  HostTask() = default;
  void operator()() { run_(storage_.data()); }

 private:
  static constexpr std::size_t kBytes = 96;
  alignas(16) std::array<std::byte, kBytes> storage_{};
  void (*run_)(void*) = nullptr;
};

class Lane {
 public:
  virtual ~Lane() = default;
  // Runs `task` on the host, in order with this lane's other work.
  virtual void submit(HostTask task) = 0;
  virtual Marker mark() = 0;
  // Work queued from now on waits for `marker`. The caller does not wait (except on an inline
  // lane).
  virtual void after(Marker marker) = 0;
  // Waits in the same way for everything that `other` has been given so far.
  virtual void follow(Lane& other) { after(other.mark()); }
  virtual bool reached(Marker marker) const = 0;
  // Returns when all queued work is done. Throws the error of that work.
  virtual void drain() = 0;
  virtual bool is_inline() const = 0;

  // Blocks until `marker` of this lane is reached.
  virtual void wait_for(Marker marker) const = 0;

  // Whether the lane measures time: seconds between two reached markers.
  virtual bool keeps_time() const { return false; }
  virtual double seconds_between(Marker, Marker) const { return 0; }

  // The stream of a GPU lane, for libraries that queue on it. Null for other lanes.
  virtual void* native() { return nullptr; }
  // True while a captured graph replays: the queued work is part of the graph, so callers must not
  // queue on native() again. See Program::run_step.
  virtual bool replays() const { return false; }
};

// Work runs immediately on the queuing thread.
class InlineLane final : public Lane {
 public:
  void submit(HostTask task) override;
  Marker mark() override { return {this, done_}; }
  void after(Marker marker) override;
  bool reached(Marker marker) const override { return marker.position <= done_; }
  void drain() override {}
  bool is_inline() const override { return true; }
  void wait_for(Marker) const override {}

 private:
  std::uint64_t done_ = 0;
};

// A background thread. `at_start` runs on it first (binding, naming).
class ThreadLane final : public Lane {
 public:
  explicit ThreadLane(HostTask at_start = [] {});
  ~ThreadLane() override;

  void submit(HostTask task) override;
  Marker mark() override;
  void after(Marker marker) override;
  bool reached(Marker marker) const override;
  void drain() override;
  bool is_inline() const override { return false; }
  void wait_for(Marker marker) const override;

 private:
  struct Entry {
    HostTask task;
    Marker wait;
  };
  static constexpr std::size_t kSlots = 256;

  void push(const Entry& entry);
  void work(HostTask at_start);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::array<Entry, kSlots> ring_;
  std::uint64_t queued_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

// A counting semaphore.
//
// std::counting_semaphore of libstdc++ 12 occasionally loses a release, and waiters sleep forever
// (GCC bug 104928).

class Semaphore {
 public:
  explicit Semaphore(int count) : free_(count) {}

  void acquire() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
};

// Holds one permit.
class Permit {
 public:
  explicit Permit(Semaphore& permits) : permits_(permits) { permits_.acquire(); }
  ~Permit() { permits_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  Semaphore& permits_;
};

// Binds the calling thread to one CPU. Does nothing if that is not permitted.
void bind_to(int cpu);

// Binds it to several CPUs. Does nothing for an empty list.
void bind_to_cpus(const std::vector<int>& cpus);

// Names the calling thread for top, gdb and perf. Only the first 15 bytes count.
void name_this_thread(const std::string& name);

}  // namespace paceline
