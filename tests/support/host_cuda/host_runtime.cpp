#include "tests/support/host_cuda/host_runtime.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/device/cuda/kernels/all.h"
#include "tests/support/fake_stream.h"
#include "tests/support/host_cuda/block.h"
#include "tests/support/host_cuda/capture.h"

namespace paceline::cuda {

namespace {

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

// Whether a kernel's threads wait for each other; the others need no stacks.
template <typename Kernel>
constexpr bool kWaits = false;
template <typename Row>
constexpr bool kWaits<ChannelSums<Row>> = true;
template <>
constexpr bool kWaits<SoftmaxLoss> = true;
template <>
constexpr bool kWaits<SquareSums> = true;
template <>
constexpr bool kWaits<FindClipFactor> = true;

template <typename Kernel>
void run_on_host(const void* parameters, const Grid& grid, HostBlock& host) {
  const Kernel& kernel = *static_cast<const Kernel*>(parameters);
  for (unsigned block = 0; block < grid.blocks; ++block) {
    std::vector<double> shared(grid.shared_bytes / sizeof(double) + 1, -1e300);  // never counted on
    const auto thread = [&](unsigned t) {
      HostContext context{host,  t,           grid.threads,
                          block, grid.blocks, reinterpret_cast<unsigned char*>(shared.data())};
      kernel(context);
    };
    if constexpr (kWaits<Kernel>) {
      host.run(grid.threads, thread);
    } else {
      for (unsigned t = 0; t < grid.threads; ++t) thread(t);
    }
  }
}

using HostKernels = std::map<std::type_index, void (*)(const void*, const Grid&, HostBlock&)>;

struct Collect {
  HostKernels& kernels;
  template <typename Kernel>
  void visit() {
    kernels.emplace(typeid(Kernel), &run_on_host<Kernel>);
  }
};

HostKernels all_kernels() {
  HostKernels kernels;
  for_each_kernel(Collect{kernels});
  return kernels;
}

using Work = Capture::Work;

// What a graph keeps alive, until it is gone.
class Retained {
 public:
  void add(Work release) { releases_.push_back(std::move(release)); }
  Retained() = default;
  Retained(Retained&& other) noexcept : releases_(std::exchange(other.releases_, {})) {}
  ~Retained() { clear(); }
  void clear() {
    for (const Work& release : std::exchange(releases_, {})) release();
  }

 private:
  std::vector<Work> releases_;
};

class HostGraph final : public Graph {
 public:
  HostGraph(std::vector<Work> work, std::shared_ptr<Capture::Marks> marks, Retained retained,
            HostCounts* counts)
      : work_(std::move(work)),
        marks_(std::move(marks)),
        retained_(std::move(retained)),
        counts_(counts) {}
  void set_mark(std::size_t index, Event event) override {
    auto* mark = static_cast<HostEvent*>(event);
    mark->capture = 0;
    marks_->at(index) = mark;
  }
  void launch(Stream) override {
    if (counts_) ++counts_->graph_launches;
    for (const Work& work : work_) work();
  }

 private:
  std::vector<Work> work_;
  std::shared_ptr<Capture::Marks> marks_;
  Retained retained_;
  HostCounts* counts_;
};

class HostRuntime final : public Runtime {
 public:
  explicit HostRuntime(HostCounts* counts) : kernels_(all_kernels()), counts_(counts) {}

  std::string description() const override { return "a host that plays a GPU"; }
  unsigned multiprocessors() const override { return 3; }
  Memory device_memory(std::size_t bytes) override { return memory(bytes, MemoryKind::device); }
  Memory pinned_memory(std::size_t bytes) override { return memory(bytes, MemoryKind::pinned); }
  std::size_t free_bytes() const override { return std::size_t{1} << 40; }

  Stream make_stream(StreamPriority) override {
    return static_cast<FakeStream*>(new HostStream{{&enqueue, &captures, &retain}, this});
  }
  void destroy_stream(Stream stream) noexcept override {
    delete static_cast<HostStream*>(static_cast<FakeStream*>(stream));
  }
  Event make_event() override { return new HostEvent; }
  void destroy_event(Event event) noexcept override { delete &of(event); }
  void record(Event event, Stream stream) override {
    if (is_captured(stream)) return capture_.record(of(event), stream);
    of(event).capture = 0;
    of(event).time = now_seconds();
  }
  void wait(Stream stream, Event event) override {
    if (is_captured(stream) || of(event).capture != 0) capture_.wait(stream, of(event));
  }
  bool done(Event event) const override {
    look_at(event);
    return true;
  }
  void synchronize_event(Event event) const override { look_at(event); }
  void synchronize_stream(Stream stream) override {
    if (is_captured(stream))
      throw Error(ErrorKind::internal, "waits for a stream while it is captured");
  }
  double seconds_between(Event begin, Event end) const override {
    look_at(begin);
    look_at(end);
    return of(end).time - of(begin).time;
  }
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    queue(stream, [=] { std::memcpy(to, from, bytes); });
  }
  void clear(void* data, std::size_t bytes, Stream stream) override {
    queue(stream, [=] { std::memset(data, 0, bytes); });
  }
  void host_task(void (*task)(void*), void* argument, Stream stream) override {
    queue(stream, [=] { task(argument); });
  }
  void begin_capture(Stream stream) override {
    capture_.begin(stream);
    thread_ = std::this_thread::get_id();
  }
  std::unique_ptr<Graph> end_capture(Stream stream) override {
    capture_.end(stream);
    thread_ = std::thread::id();
    if (counts_) ++counts_->captures;
    return std::make_unique<HostGraph>(capture_.take_work(), capture_.marks(), std::move(retained_),
                                       counts_);
  }
  void cancel_capture(Stream) noexcept override {
    capture_.cancel();
    retained_.clear();
    thread_ = std::thread::id();
  }
  void record_in_graph(Event event, Stream stream) override {
    capture_.record_in_graph(of(event), stream);
  }

 protected:
  void launch_kernel(std::type_index kernel, const void* parameters, std::size_t bytes,
                     const Grid& grid, Stream stream) override {
    const auto found = kernels_.find(kernel);
    if (found == kernels_.end()) {
      throw Error(ErrorKind::internal, "a kernel that is not in kernels/all.h", kernel.name());
    }
    if (grid.blocks == 0 || grid.threads == 0 || grid.threads > 1024) {
      throw Error(ErrorKind::internal, "a grid that no GPU takes", kernel.name());
    }
    const auto* data = static_cast<const double*>(parameters);
    std::vector<double> kept((bytes + sizeof(double) - 1) / sizeof(double));
    std::memcpy(kept.data(), data, bytes);
    queue(stream, [run = found->second, kept = std::move(kept), grid, this] {
      if (counts_) ++counts_->kernels;
      run(kept.data(), grid, block_);
    });
  }

 private:
  // Fake libraries queue on it too.
  struct HostStream : FakeStream {
    HostRuntime* runtime;
  };
  static void enqueue(FakeStream* stream, void (*work)(void*), void* argument) {
    static_cast<HostStream*>(stream)->runtime->host_task(work, argument, stream);
  }
  static bool captures(FakeStream* stream) {
    return static_cast<HostStream*>(stream)->runtime->is_captured(stream);
  }
  static void retain(FakeStream* stream, void (*release)(void*), void* argument) {
    static_cast<HostStream*>(stream)->runtime->retained_.add([=] { release(argument); });
  }
  static HostEvent& of(Event event) { return *static_cast<HostEvent*>(event); }

  // Streams of other threads, which copy beside the lanes, are never captured.
  bool captures_here() const { return thread_ == std::this_thread::get_id(); }
  bool is_captured(Stream stream) const { return captures_here() && capture_.covers(stream); }
  void look_at(Event event) const {
    if (captures_here()) throw Error(ErrorKind::internal, "asks for an event while it captures");
    if (of(event).capture != 0) throw Error(ErrorKind::internal, "asks for a captured event");
  }

  Memory memory(std::size_t bytes, MemoryKind kind) {
    if (captures_here()) {
      throw Error(ErrorKind::internal, "takes memory while a stream is captured");
    }
    if (counts_) ++counts_->allocations;
    auto whole = std::make_shared<Memory>(host_memory(std::max<std::size_t>(bytes, 1)));
    return Memory(whole->data(), bytes, kind, [whole](void*) {});
  }
  void queue(Stream stream, Work work) {
    if (is_captured(stream)) {
      capture_.add(stream, std::move(work));
    } else {
      work();
    }
  }

  HostKernels kernels_;
  HostBlock block_;
  HostCounts* counts_;
  Capture capture_;
  Retained retained_;                      // by the graph that is being captured
  std::atomic<std::thread::id> thread_{};  // that captures
};

}  // namespace

std::unique_ptr<Runtime> make_host_runtime(HostCounts* counts) {
  return std::make_unique<HostRuntime>(counts);
}

}  // namespace paceline::cuda
