#include "engine/device/cuda/gpu_runtime.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cuda/nvml/utilization.h"

namespace paceline::cuda {

namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it is told; the next call's is its own
  throw internal_error(fmt::format("{}: {}", call, cudaGetErrorString(status)),
                       "CUDA " + std::string(cudaGetErrorName(status)),
                       "if the GPU fell off the bus or was reset, nvidia-smi says so");
}

cudaStream_t of(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaEvent_t to_cuda_event(Event event) {
  return static_cast<cudaEvent_t>(event);
}

// Done when it returns: our streams do not wait for CUDA's own, where the bytes are cleared. The
// whole device must not be waited for, as another replica's thread may be capturing.
void zero(void* data, std::size_t bytes) {
  check(cudaMemset(data, 0, bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

class CudaGraph final : public Graph {
 public:
  // `marks`: what was recorded in it, in this order, each another event.
  CudaGraph(cudaGraph_t graph, const std::vector<cudaEvent_t>& marks)
      : graph_(graph, &cudaGraphDestroy), marks_(marks.size()) {
    if (!marks.empty()) find(marks);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    exec_.reset(exec);
  }
  void set_mark(std::size_t index, Event event) override {
    check(cudaGraphExecEventRecordNodeSetEvent(exec_.get(), marks_.at(index), to_cuda_event(event)),
          "cudaGraphExecEventRecordNodeSetEvent");
  }
  void launch(Stream stream) override {
    check(cudaGraphLaunch(exec_.get(), of(stream)), "cudaGraphLaunch");
  }

 private:
  void find(const std::vector<cudaEvent_t>& marks) {
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph_.get(), nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph_.get(), nodes.data(), &count), "cudaGraphGetNodes");
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
      if (type != cudaGraphNodeTypeEventRecord) continue;
      cudaEvent_t event = nullptr;
      check(cudaGraphEventRecordNodeGetEvent(node, &event), "cudaGraphEventRecordNodeGetEvent");
      const auto mark = std::find(marks.begin(), marks.end(), event);
      if (mark != marks.end()) marks_[static_cast<std::size_t>(mark - marks.begin())] = node;
    }
    if (std::find(marks_.begin(), marks_.end(), nullptr) == marks_.end()) return;
    throw internal_error("a captured graph lacks an event that was recorded in it");
  }

  // Kept: the executable's nodes are named by its own.
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)> graph_;
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, decltype(&cudaGraphExecDestroy)> exec_{
      nullptr, &cudaGraphExecDestroy};
  std::vector<cudaGraphNode_t> marks_;
};

class CudaRuntime final : public Runtime {
 public:
  explicit CudaRuntime(const VisibleGpu& gpu) : gpu_(gpu), kernels_(device_kernels()) {
    use();
    int value = 0;
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, gpu_.index),
          "cudaDeviceGetAttribute");
    multiprocessors_ = static_cast<unsigned>(value);
    // Now, not at the first launch: loading may wait for the whole context, and a replica beside
    // this one may by then run a sum that waits for this one's.
    for (const auto& [type, kernel] : kernels_) {
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    }
  }

  std::string description() const override {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    return fmt::format("{} at {}, driver for CUDA {}, CUDA {}", gpu_.name, gpu_.pci,
                       version_text(driver), version_text(runtime));
  }
  unsigned multiprocessors() const override { return multiprocessors_; }

  Memory device_memory(std::size_t bytes) override {
    if (bytes == 0) return {};
    use();
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw usage_error(fmt::format("another {} cannot be allocated: only {} are free",
                                    format_bytes(static_cast<double>(bytes)),
                                    format_bytes(static_cast<double>(free_bytes()))),
                        gpu_.name, "lower --batch-per-replica, or stop other programs on this GPU");
    }
    check(status, "cudaMalloc");
    Memory memory(data, bytes, MemoryKind::device, [](void* pointer) { cudaFree(pointer); });
    zero(data, bytes);
    return memory;
  }
  Memory pinned_memory(std::size_t bytes) override {
    if (bytes == 0) return {};
    use();
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    std::fill_n(static_cast<char*>(data), bytes, 0);
    return Memory(data, bytes, MemoryKind::pinned, [](void* pointer) { cudaFreeHost(pointer); });
  }
  Memory pin(void* data, std::size_t bytes) override {
    use();
    if (cudaHostRegister(data, bytes, cudaHostRegisterPortable) != cudaSuccess) {
      cudaGetLastError();
      return {};
    }
    return Memory(data, bytes, MemoryKind::pinned,
                  [](void* pointer) { cudaHostUnregister(pointer); });
  }
  std::size_t free_bytes() const override {
    use();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  Stream make_stream(StreamPriority priority) override {
    use();
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                       priority == StreamPriority::high ? greatest : least),
          "cudaStreamCreateWithPriority");
    return stream;
  }
  void destroy_stream(Stream stream) noexcept override { cudaStreamDestroy(of(stream)); }
  Event make_event() override {
    use();
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    return event;
  }
  void destroy_event(Event event) noexcept override { cudaEventDestroy(to_cuda_event(event)); }
  void record(Event event, Stream stream) override {
    check(cudaEventRecord(to_cuda_event(event), of(stream)), "cudaEventRecord");
  }
  void wait(Stream stream, Event event) override {
    check(cudaStreamWaitEvent(of(stream), to_cuda_event(event), 0), "cudaStreamWaitEvent");
  }
  bool done(Event event) const override {
    const cudaError_t status = cudaEventQuery(to_cuda_event(event));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  void synchronize_event(Event event) const override {
    use();
    check(cudaEventSynchronize(to_cuda_event(event)), "cudaEventSynchronize");
  }
  void synchronize_stream(Stream stream) override {
    use();
    check(cudaStreamSynchronize(of(stream)), "cudaStreamSynchronize");
  }
  double seconds_between(Event begin, Event end) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, to_cuda_event(begin), to_cuda_event(end)),
          "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

  // Also from threads that have not used a GPU before.
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(stream)), "cudaMemcpyAsync");
  }
  void fill(void* data, unsigned char byte, std::size_t bytes, Stream stream) override {
    check(cudaMemsetAsync(data, byte, bytes, of(stream)), "cudaMemsetAsync");
  }
  void host_task(void (*task)(void*), void* argument, Stream stream) override {
    check(cudaLaunchHostFunc(of(stream), task, argument), "cudaLaunchHostFunc");
  }

  void begin_range(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void end_range() noexcept override { nvtxRangePop(); }

  // Captures this thread only, so that threads of other replicas may go on allocating.
  void begin_capture(Stream stream) override {
    marks_.clear();
    check(cudaStreamBeginCapture(of(stream), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  std::unique_ptr<Graph> end_capture(Stream stream) override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(of(stream), &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph, marks_);
  }
  void cancel_capture(Stream stream) noexcept override {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(of(stream), &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  void record_in_graph(Event event, Stream stream) override {
    check(cudaEventRecordWithFlags(to_cuda_event(event), of(stream), cudaEventRecordExternal),
          "cudaEventRecordWithFlags");
    marks_.push_back(to_cuda_event(event));
  }

 protected:
  void launch_kernel(std::type_index kernel, const void* parameters, std::size_t, const Grid& grid,
                     Stream stream) override {
    const auto found = kernels_.find(kernel);
    if (found == kernels_.end()) {
      throw internal_error("a kernel that is in no table of kernels", kernel.name());
    }
    constexpr std::size_t kWithoutAsking = 48 << 10;
    if (grid.shared_bytes > kWithoutAsking) allow(kernel, found->second, grid.shared_bytes);
    std::array<void*, 1> arguments = {const_cast<void*>(parameters)};
    check(cudaLaunchKernel(found->second, dim3(grid.blocks), dim3(grid.threads), arguments.data(),
                           grid.shared_bytes, of(stream)),
          "cudaLaunchKernel");
  }

 private:
  void allow(std::type_index kernel, const void* function, std::size_t shared_bytes) {
    std::size_t& allowed = shared_bytes_[kernel];
    if (shared_bytes <= allowed) return;
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "cudaFuncSetAttribute");
    allowed = shared_bytes;
  }
  // The current device is the calling thread's own.
  void use() const { check(cudaSetDevice(gpu_.index), "cudaSetDevice"); }

  VisibleGpu gpu_;
  unsigned multiprocessors_ = 0;
  std::map<std::type_index, const void*> kernels_;
  std::map<std::type_index, std::size_t> shared_bytes_;  // that were asked for
  std::vector<cudaEvent_t> marks_;                       // of the capture in progress
};

class CudaDriver final : public GpuDriver {
 public:
  std::vector<VisibleGpu> visible(std::string& why) const override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
      cudaGetLastError();
      int driver = 0;
      cudaDriverGetVersion(&driver);
      why = why_no_gpu(driver, CUDART_VERSION, status ? cudaGetErrorString(status) : "");
      return {};
    }
    std::vector<VisibleGpu> gpus;
    for (int index = 0; index < count; ++index) gpus.push_back(describe(index));
    return gpus;
  }
  Support runs_on(const VisibleGpu& gpu) const override {
    if (cudaSetDevice(gpu.index) != cudaSuccess) {
      cudaGetLastError();
      return Support::no(gpu.name + " cannot be used: another process may have exclusive access");
    }
    cudaFuncAttributes attributes{};
    if (cudaFuncGetAttributes(&attributes, device_kernels().begin()->second) == cudaSuccess) {
      return Support::yes();
    }
    cudaGetLastError();
    return Support::no(
        fmt::format("{} has compute capability {}.{}, for which this was not built; build it with "
                    "-DCMAKE_CUDA_ARCHITECTURES={}{} or the preset all-gpus",
                    gpu.name, gpu.major, gpu.minor, gpu.major, gpu.minor));
  }
  std::unique_ptr<GpuWatch> watch(const std::vector<std::string>& pcis) const override {
    return std::make_unique<UtilizationSampler>(Nvml::open(), pcis);
  }
  std::function<GpuPower()> power_reader(const std::string& pci) const override {
    return [gpu = cuda::NvmlGpu(cuda::Nvml::open(), pci)] {
      return GpuPower{gpu.joules(), gpu.watts()};
    };
  }
  void select(int index) const override { check(cudaSetDevice(index), "cudaSetDevice"); }
  void clear(void* data, std::size_t bytes) const override { zero(data, bytes); }

 private:
  static VisibleGpu describe(int index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    std::array<char, 32> pci{};
    check(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), index),
          "cudaDeviceGetPCIBusId");
    std::string uuid = "GPU-";
    for (int i = 0; i < 16; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
      uuid += fmt::format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
    }
    return {index,
            properties.name,
            pci.data(),
            uuid,
            properties.major,
            properties.minor,
            properties.totalGlobalMem};
  }
};

}  // namespace

std::string why_no_gpu(int driver, int runtime, const std::string& error) {
  constexpr int kOldestMajor = 12;
  constexpr std::array kDrivers = {525, 580};  // the oldest of CUDA 12 and 13
  if (driver == 0) return "no NVIDIA driver is loaded here";
  const int major = runtime / 1000;
  if (driver / 1000 >= major) return error.empty() ? "CUDA sees no GPU" : "CUDA says: " + error;
  const int index = major - kOldestMajor;
  const bool known = index >= 0 && index < static_cast<int>(kDrivers.size());
  const std::string needed =
      known ? fmt::format(" ({})", kDrivers[static_cast<std::size_t>(index)]) : "";
  const std::string cure =
      driver / 1000 >= kOldestMajor
          ? fmt::format(", or build with CUDA Toolkit {} or an older {}.x", version_text(driver),
                        driver / 1000)
          : fmt::format(
                "; it is too old for any toolkit that this program builds with ({}.0 or newer)",
                kOldestMajor);
  return fmt::format(
      "the driver is for CUDA {}, and this program needs one for CUDA {}.0 or newer{}: update the "
      "driver{}",
      version_text(driver), major, needed, cure);
}

std::unique_ptr<GpuDriver> make_gpu_driver() {
  return std::make_unique<CudaDriver>();
}

std::unique_ptr<Runtime> make_cuda_runtime(const VisibleGpu& gpu, HostWaits waits) {
  if (waits == HostWaits::asleep && cudaInitDevice(gpu.index, cudaDeviceScheduleBlockingSync,
                                                   cudaInitDeviceFlagsAreValid) != cudaSuccess) {
    cudaGetLastError();  // what is wrong with the card, the next calls say
  }
  if (const Support support = CudaDriver().runs_on(gpu); !support) {
    throw usage_error(support.because(), gpu.pci, "see 'paceline list devices'");
  }
  return std::make_unique<CudaRuntime>(gpu);
}

}  // namespace paceline::cuda
