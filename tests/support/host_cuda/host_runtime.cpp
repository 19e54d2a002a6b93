#include "tests/support/host_cuda/host_runtime.h"

#include <cstdlib>
#include <cstring>

#include "engine/core/error.h"
#include "tests/support/host_cuda/capture.h"
#include "tests/support/host_cuda/kernel_player.h"

namespace paceline::cuda {

namespace {

// What a graph keeps alive, until it is gone.
class Retained {
 public:
  using Release = std::function<void()>;
  void add(Release release) { releases_.push_back(std::move(release)); }
  Retained() = default;
  Retained(Retained&& other) noexcept : releases_(std::exchange(other.releases_, {})) {}
  ~Retained() { clear(); }
  void clear() {
    for (const Release& release : std::exchange(releases_, {})) release();
  }

 private:
  std::vector<Release> releases_;
};

// What outlives the runtime, as memory does.
struct HostGpu {
  explicit HostGpu(const HostOptions& given) : options(given), streams(given) {}
  HostOptions options;
  HostCounts unseen;
  HostCounts& counts = options.counts ? *options.counts : unseen;
  std::atomic<std::size_t> device_bytes{0};
  std::atomic<std::thread::id> captures{};  // the thread that does
  Capture capture;
  const std::shared_ptr<KernelPlayer> kernels = make_kernel_player();
  HostStreams streams;
};

void count_call(HostGpu& gpu, const char* call, ErrorKind kind = ErrorKind::internal) {
  if (!gpu.options.fault || !gpu.options.fault->now(call)) return;
  throw Error(kind, std::string(call) + ": it was made to fail");
}

// CUDA frees memory once the device has nothing left to do.
void release(HostGpu& gpu, std::size_t device_bytes) noexcept {
  if (gpu.captures.load() == std::this_thread::get_id()) {
    gpu.capture.spoil("frees memory while a stream is captured");
  }
  try {
    gpu.streams.finish_all();
  } catch (const std::exception&) {  // whoever waits next hears of it
  }
  gpu.device_bytes -= device_bytes;
  gpu.counts.device_bytes = gpu.device_bytes;
}

class HostGraph final : public Graph {
 public:
  HostGraph(HostGpu& gpu, std::vector<HostNode> nodes, std::vector<HostEvent*> marks,
            Retained retained)
      : gpu_(gpu),
        work_(std::make_shared<HostGraphWork>(std::move(nodes))),
        marks_(std::move(marks)),
        retained_(std::make_shared<Retained>(std::move(retained))) {}
  void set_mark(std::size_t index, Event event) override {
    count_call(gpu_, "set_mark");
    marks_.at(index) = static_cast<HostEvent*>(event);
  }
  void launch(Stream stream) override {
    count_call(gpu_, "launch of a graph");
    ++gpu_.counts.graph_launches;
    auto& on = *static_cast<HostStream*>(static_cast<FakeStream*>(stream));
    HostOp op;
    for (HostEvent* mark : marks_) {
      op.records.push_back(gpu_.streams.announce(on));
      mark->last = op.records.back();
      mark->capture = 0;
    }
    op.kernels = work_->kernels();
    op.kept = {work_, retained_};
    op.work = [work = work_.get(), seed = gpu_.streams.random(), marks = op.records](HostBlock&) {
      work->run(seed, marks);
    };
    gpu_.streams.add(on, std::move(op));
  }

 private:
  HostGpu& gpu_;
  std::shared_ptr<HostGraphWork> work_;
  std::vector<HostEvent*> marks_;
  std::shared_ptr<Retained> retained_;  // also by launches that have yet to run
};

class HostRuntime final : public Runtime {
 public:
  explicit HostRuntime(const HostOptions& options) : gpu_(std::make_shared<HostGpu>(options)) {}
  ~HostRuntime() override { release(*gpu_, 0); }

  std::string description() const override { return "a host that plays a GPU"; }
  unsigned multiprocessors() const override { return 3; }
  Memory device_memory(std::size_t bytes) override {
    called("device_memory", ErrorKind::usage);
    if (bytes > gpu_->options.memory_bytes - gpu_->device_bytes) {
      throw Error(ErrorKind::usage, "another " + std::to_string(bytes) + " bytes do not fit");
    }
    gpu_->counts.device_bytes = gpu_->device_bytes += bytes;
    return memory(bytes, MemoryKind::device, bytes);
  }
  Memory pinned_memory(std::size_t bytes) override {
    called("pinned_memory");
    return memory(bytes, MemoryKind::pinned, 0);
  }
  std::size_t free_bytes() const override {
    called("free_bytes");
    return gpu_->options.memory_bytes - gpu_->device_bytes;
  }

  Stream make_stream(StreamPriority priority) override {
    called("make_stream");
    HostStream& stream = gpu_->streams.make({&enqueue, &captures, &retain}, this, priority);
    return static_cast<FakeStream*>(&stream);
  }
  void destroy_stream(Stream stream) noexcept override { gpu_->streams.destroy(on(stream)); }
  // A lane makes thousands at once: that some of them fail says as much as that each does.
  Event make_event() override {
    constexpr std::size_t kFaulty = 512;
    if (events_++ % kFaulty == 0) called("make_event");
    return new HostEvent;
  }
  void destroy_event(Event event) noexcept override { delete &of(event); }
  void record(Event event, Stream stream) override {
    called("record");
    if (is_captured(stream)) return gpu_->capture.record(of(event), on(stream));
    of(event).capture = 0;
    of(event).last = gpu_->streams.record(on(stream));
  }
  void wait(Stream stream, Event event) override {
    called("wait");
    ++gpu_->counts.waits;
    if (is_captured(stream) || of(event).capture != 0) {
      return gpu_->capture.wait(on(stream), of(event));
    }
    gpu_->streams.wait(on(stream), of(event).last);
  }
  bool done(Event event) const override {
    called("done");
    return gpu_->streams.done(find_recording(event));
  }
  void synchronize_event(Event event) const override {
    gpu_->streams.finish(find_recording(event));
    called("synchronize_event");  // after which nothing runs
  }
  void synchronize_stream(Stream stream) override {
    if (is_captured(stream))
      throw Error(ErrorKind::internal, "waits for a stream while it is captured");
    gpu_->streams.finish(gpu_->streams.record(on(stream)));
    called("synchronize_stream");
  }
  double seconds_between(Event begin, Event end) const override {
    called("seconds_between");
    return gpu_->streams.seconds_between(find_recording(begin), find_recording(end));
  }
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    called("copy");
    queue(stream, [=](HostBlock&) { std::memcpy(to, from, bytes); });
  }
  void fill(void* data, unsigned char byte, std::size_t bytes, Stream stream) override {
    called("fill");
    queue(stream, [=](HostBlock&) { std::memset(data, byte, bytes); });
  }
  void host_task(void (*task)(void*), void* argument, Stream stream) override {
    called("host_task");
    queue(stream, [=](HostBlock&) { task(argument); });
  }
  void begin_range(const std::string& name) override {
    ++gpu_->counts.ranges[name];
    ++gpu_->counts.open_ranges;
  }
  void end_range() noexcept override { --gpu_->counts.open_ranges; }
  void begin_capture(Stream stream) override {
    called("begin_capture");
    gpu_->capture.begin(on(stream));
    gpu_->captures = std::this_thread::get_id();
  }
  std::unique_ptr<Graph> end_capture(Stream stream) override {
    called("end_capture");
    std::vector<HostNode> nodes = gpu_->capture.end(on(stream));
    gpu_->captures = std::thread::id();
    ++gpu_->counts.captures;
    return std::make_unique<HostGraph>(*gpu_, std::move(nodes), gpu_->capture.take_marks(),
                                       std::move(retained_));
  }
  void cancel_capture(Stream) noexcept override {
    gpu_->capture.cancel();
    retained_.clear();
    gpu_->captures = std::thread::id();
  }
  void record_in_graph(Event event, Stream stream) override {
    called("record_in_graph");
    gpu_->capture.record_in_graph(of(event), on(stream));
  }

 protected:
  void launch_kernel(std::type_index kernel, const void* parameters, std::size_t bytes,
                     const Grid& grid, Stream stream) override {
    called("launch_kernel");
    if (!gpu_->kernels->knows(kernel)) {
      throw Error(ErrorKind::internal, "a kernel that is in no table of kernels", kernel.name());
    }
    if (grid.blocks == 0 || grid.threads == 0 || grid.threads > 1024) {
      throw Error(ErrorKind::internal, "a grid that no GPU takes", kernel.name());
    }
    const auto* data = static_cast<const double*>(parameters);
    std::vector<double> kept((bytes + sizeof(double) - 1) / sizeof(double));
    std::memcpy(kept.data(), data, bytes);
    queue(
        stream,
        [player = gpu_->kernels.get(), kernel, bytes, kept = std::move(kept),
         grid](HostBlock& block) { player->run(kernel, kept.data(), bytes, grid, block); },
        true);
  }

 private:
  // What fake libraries call.
  static HostRuntime& of(FakeStream* stream) {
    return *static_cast<HostRuntime*>(static_cast<HostStream*>(stream)->owner);
  }
  static void enqueue(FakeStream* stream, void (*work)(void*), void* argument) {
    of(stream).host_task(work, argument, stream);
  }
  static bool captures(FakeStream* stream) { return of(stream).is_captured(stream); }
  static void retain(FakeStream* stream, void (*release)(void*), void* argument) {
    of(stream).retained_.add([=] { release(argument); });
  }
  static HostStream& on(Stream stream) {
    return *static_cast<HostStream*>(static_cast<FakeStream*>(stream));
  }
  static HostEvent& of(Event event) { return *static_cast<HostEvent*>(event); }

  void called(const char* call, ErrorKind kind = ErrorKind::internal) const {
    count_call(*gpu_, call, kind);
  }

  // Streams of other threads, which copy beside the lanes, are never captured.
  bool captures_here() const { return gpu_->captures.load() == std::this_thread::get_id(); }
  bool is_captured(Stream stream) const {
    return captures_here() && gpu_->capture.covers(on(stream));
  }
  Recording find_recording(Event event) const {
    if (captures_here()) throw Error(ErrorKind::internal, "asks for an event while it captures");
    if (of(event).capture != 0) throw Error(ErrorKind::internal, "asks for a captured event");
    return of(event).last;
  }

  Memory memory(std::size_t bytes, MemoryKind kind, std::size_t device_bytes) {
    if (bytes == 0) return {};
    if (captures_here()) {
      throw Error(ErrorKind::internal, "takes memory while a stream is captured");
    }
    ++gpu_->counts.allocations;
    auto whole = std::make_shared<Memory>(host_memory(bytes));
    if (kind == MemoryKind::device) gpu_->kernels->allocated(whole->data(), bytes);
    return Memory(whole->data(), bytes, kind, [whole, gpu = gpu_, device_bytes](void* data) {
      release(*gpu, device_bytes);
      gpu->kernels->released(data);
    });
  }
  void queue(Stream stream, std::function<void(HostBlock&)> work, bool is_kernel = false) {
    if (is_captured(stream)) {
      HostNode node;
      node.work = std::move(work);
      node.is_kernel = is_kernel;
      return gpu_->capture.add(on(stream), std::move(node));
    }
    HostOp op;
    op.work = std::move(work);
    op.kernels = is_kernel ? 1 : 0;
    gpu_->streams.add(on(stream), std::move(op));
  }

  std::atomic<std::size_t> events_ = 0;
  std::shared_ptr<HostGpu> gpu_;
  Retained retained_;  // by the graph that is being captured
};

}  // namespace

std::unique_ptr<Runtime> make_host_runtime(const HostOptions& options) {
  return std::make_unique<HostRuntime>(options);
}

std::unique_ptr<Runtime> make_host_runtime(HostCounts* counts) {
  HostOptions options;
  options.counts = counts;
  const char* threads = std::getenv("PACELINE_EMULATED_THREADS");
  options.threads = threads && *threads == '1';
  return make_host_runtime(options);
}

StreamPriority stream_priority(Stream stream) {
  return static_cast<HostStream*>(static_cast<FakeStream*>(stream))->priority;
}

}  // namespace paceline::cuda
