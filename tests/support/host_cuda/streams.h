// The queues of an emulated GPU's streams. As CUDA permits, work runs as late as possible: when
// somebody waits for it. Or, with threads, as early as possible: each stream has one.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "engine/device/cuda/runtime.h"
#include "tests/support/fake_stream.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "tests/support/host_cuda/place.h"

namespace paceline::cuda {

struct HostStream;

// One recording of an event. Whoever waits for it does not see later ones.
struct Recorded {
  HostStream* stream = nullptr;
  bool done = false;
  bool by_graph = false;
  double time = 0;
};
using Recording = Recorded*;  // null: none

struct HostOp {
  std::function<void(HostBlock&)> work;          // may throw
  std::vector<std::shared_ptr<void>> kept = {};  // until it ran
  Recording waits = nullptr;
  std::vector<Recording> records;  // whose times the work sets
  std::size_t kernels = 0;
};

// What is queued of it: the sanitizer sees only the task.
struct HostQueued {
  std::unique_ptr<HostTask> task;
  std::vector<std::shared_ptr<void>> kept;
  Recording waits;
  std::vector<Recording> records;
  std::size_t kernels;
};

struct HostStream : FakeStream {
  void* owner = nullptr;
  StreamPriority priority = StreamPriority::normal;
  std::deque<HostQueued> queue;
  bool busy = false, destroyed = false;
  HostPlace place, graph_place;  // the latter for nodes that were captured on it
  std::thread thread;
};

// From any thread.
class HostStreams {
 public:
  explicit HostStreams(const HostOptions& options);
  ~HostStreams();  // what was not waited for runs now
  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  HostStream& make(const FakeStream& base, void* owner, StreamPriority priority);
  // What it has yet to do remains.
  void destroy(HostStream& stream) noexcept;
  void add(HostStream& stream, HostOp op);
  Recording record(HostStream& stream);
  Recording announce(HostStream& stream);  // what a graph will record
  void wait(HostStream& stream, Recording recording);
  // Throw what work threw, and again each time, and if they are asked for what a graph has yet to
  // record: it is not documented what CUDA answers.
  bool done(Recording recording);  // lets a little of what is asked for happen
  void finish(Recording recording);
  void finish_all();
  double seconds_between(Recording begin, Recording end);
  std::uint64_t random();

 private:
  using Lock = std::unique_lock<std::mutex>;
  Lock lock() const;
  void push(Lock& lock, HostStream& stream, HostOp op);
  Recording record(Lock& lock, HostStream& stream);
  void finish(Lock& lock, Recording recording);
  static void check(Recording recording);
  static bool is_held_up(const HostStream& stream);
  void step(Lock& lock, HostStream& stream);
  void run_front(Lock& lock, HostStream& stream);
  void run(const HostOp& op, HostBlock& block) noexcept;
  void drive(HostStream& stream);

  const HostOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<HostStream>> streams_;
  std::deque<Recorded> recordings_;  // kept, as whoever lets go of one may not have waited for it
  std::mt19937_64 random_;
  std::exception_ptr error_;
  bool stop_ = false;
};

}  // namespace paceline::cuda
