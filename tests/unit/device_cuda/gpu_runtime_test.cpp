// Calls of the CUDA runtime, against an imitation that is as strict and as unkind as CUDA may be.
#include "engine/device/cuda/gpu_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <typeindex>

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/lane.h"
#include "engine/device/cuda/replays.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace paceline::cuda {
namespace {

using fake_cuda::Living;

constexpr std::size_t kCount = 64, kBytes = kCount * sizeof(float);

VisibleGpu gpu(int index) {
  std::string why;
  return make_gpu_driver()->visible(why).at(static_cast<std::size_t>(index));
}

class GpuRuntime : public testing::Test {
 protected:
  void SetUp() override { fake_cuda::reset(); }
  void TearDown() override {
    runtime_.reset();
    EXPECT_EQ(fake_cuda::living(), Living{}) << "something was not given back";
    EXPECT_EQ(fake_cuda::complaints(), std::vector<std::string>{});
    fake_cuda::reset();
  }

  Runtime& make(int index = 0) {
    runtime_ = make_cuda_runtime(gpu(index));
    return *runtime_;
  }

  std::unique_ptr<Runtime> runtime_;
};

std::vector<float> read(Runtime& runtime, const Memory& memory, Stream stream) {
  std::vector<float> values(memory.bytes() / sizeof(float));
  runtime.copy(values.data(), memory.data(), memory.bytes(), stream);
  runtime.synchronize_stream(stream);
  return values;
}

using Copy = Convert<float, float>;

Copy copying(const Memory& from, const Memory& to) {
  return {reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(to.data()),
          from.bytes() / sizeof(float)};
}

void launch_copy(Runtime& runtime, const Memory& from, const Memory& to, Stream stream) {
  runtime.launch(copying(from, to), {2, 32, 0}, stream);
}

TEST_F(GpuRuntime, TheDriverDescribesEachCard) {
  std::string why;
  const auto gpus = make_gpu_driver()->visible(why);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].name, "NVIDIA H200");
  EXPECT_EQ(gpus[1].pci, "0000:02:00.0");
  EXPECT_EQ(gpus[0].uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
  EXPECT_EQ(gpus[1].major, 9);
  EXPECT_EQ(gpus[1].memory_bytes, std::size_t{1} << 30);
  EXPECT_EQ(make(1).multiprocessors(), 3U);
  expect_parts(runtime_->description(), {"NVIDIA H200 at 0000:02:00.0"});
}

TEST_F(GpuRuntime, WithoutAGpuItReportsWhy) {
  std::string why;
  fake_cuda::reset({{}, 0, cudaErrorInsufficientDriver});
  EXPECT_TRUE(make_gpu_driver()->visible(why).empty());
  EXPECT_EQ(why, "no NVIDIA driver is loaded here");
  fake_cuda::reset({{}, 11080, cudaErrorInsufficientDriver});
  EXPECT_TRUE(make_gpu_driver()->visible(why).empty());
  expect_parts(why, {"the driver is for CUDA 11.8"});
  fake_cuda::reset({{}, CUDART_VERSION, cudaSuccess});
  EXPECT_TRUE(make_gpu_driver()->visible(why).empty());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

// Of the driver and of this program, by what CUDA calls them: 12040 is 12.4.
TEST(NoGpu, IsExplained) {
  EXPECT_EQ(why_no_gpu(0, 13000, "says"), "no NVIDIA driver is loaded here");
  EXPECT_EQ(why_no_gpu(12040, 13000, "says"),
            "the driver is for CUDA 12.4, and this program needs one for CUDA 13.0 or newer (580): "
            "update the driver, or build with CUDA Toolkit 12.4 or an older 12.x");
  EXPECT_EQ(why_no_gpu(11080, 12090, "says"),
            "the driver is for CUDA 11.8, and this program needs one for CUDA 12.0 or newer (525): "
            "update the driver; it is too old for any toolkit that this program builds with (12.0 "
            "or newer)");
  EXPECT_EQ(why_no_gpu(12020, 12090, "says"), "CUDA says: says") << "minor versions mix";
  EXPECT_EQ(why_no_gpu(13010, 13000, ""), "CUDA sees no GPU");
}

TEST_F(GpuRuntime, ACardThatCannotBeUsedIsRefused) {
  fake_cuda::reset({{{"NVIDIA H200", 9, 0, 3, 1 << 20, true}}});
  const VisibleGpu busy = gpu(0);
  expect_error(ErrorKind::usage, {"another process"}, [&] { make_cuda_runtime(busy); });
  fake_cuda::reset({{{"Tesla T4", 7, 5, 3, 1 << 20}}});
  auto& kernel =
      *static_cast<fake_cuda::Kernel*>(const_cast<void*>(device_kernels().begin()->second));
  kernel.built = false;
  expect_error(ErrorKind::usage, {"Tesla T4", "7.5", "CMAKE_CUDA_ARCHITECTURES=75"},
               [&] { make_cuda_runtime(gpu(0)); });
  kernel.built = true;
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(GpuRuntime, WithFewCpusItWaitsAsleep) {
  make_cuda_runtime(gpu(0), HostWaits::asleep);
  make_cuda_runtime(gpu(1));
  EXPECT_EQ(fake_cuda::device_flags(0), unsigned{cudaDeviceScheduleBlockingSync});
  EXPECT_EQ(fake_cuda::device_flags(1), 0U);
}

TEST_F(GpuRuntime, MemoryIsZeroBeforeAnyStreamWrites) {
  Runtime& runtime = make();
  const Memory device = runtime.device_memory(kBytes), pinned = runtime.pinned_memory(kBytes);
  EXPECT_EQ(std::count(device.data(), device.data() + kBytes, std::byte{0}), kBytes);
  EXPECT_EQ(std::count(pinned.data(), pinned.data() + kBytes, std::byte{0}), kBytes);
  EXPECT_EQ(device.kind(), MemoryKind::device);
  EXPECT_EQ(runtime.free_bytes(), (std::size_t{1} << 30) - kBytes);
  EXPECT_EQ(runtime.device_memory(0).data(), nullptr);
}

TEST_F(GpuRuntime, WhatDoesNotFitIsAMatterOfUse) {
  Runtime& runtime = make();
  expect_error(ErrorKind::usage, {"cannot be allocated", "--batch-per-replica"},
               [&] { runtime.device_memory(std::size_t{2} << 30); });
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the next launch would be blamed for it";
  runtime.device_memory(kBytes);
}

TEST_F(GpuRuntime, MemoryOfOthersIsPinnedWhereItCanBe) {
  Runtime& runtime = make();
  std::vector<char> window(4096);
  {
    const Memory pinned = runtime.pin(window.data(), window.size());
    EXPECT_EQ(pinned.data(), reinterpret_cast<std::byte*>(window.data()));
    EXPECT_TRUE(fake_cuda::is_registered(window.data()));
    EXPECT_EQ(runtime.pin(window.data(), window.size()).data(), nullptr) << "it is already";
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  EXPECT_FALSE(fake_cuda::is_registered(window.data()));
}

// The current device is the calling thread's own, and a new thread's is the first.
TEST_F(GpuRuntime, OtherThreadsUseTheSameCard) {
  Runtime& runtime = make(1);
  std::thread([&] {
    const Memory device = runtime.device_memory(kBytes);
    int current = 0;
    cudaGetDevice(&current);
    EXPECT_EQ(current, 1);
  }).join();
  std::thread([&] {
    StreamLane lane(runtime);
    const Memory from = runtime.device_memory(kBytes), to = runtime.device_memory(kBytes);
    launch_copy(runtime, from, to, lane.stream());
    lane.wait_for(lane.mark());
  }).join();
  std::thread([&] { EXPECT_EQ(runtime.free_bytes(), std::size_t{1} << 30); }).join();
}

TEST_F(GpuRuntime, TwoCardsInOneThreadDoNotMix) {
  const auto one = make_cuda_runtime(gpu(0)), other = make_cuda_runtime(gpu(1));
  StreamLane first(*one), second(*other);
  const Memory a = one->device_memory(kBytes), b = one->device_memory(kBytes);
  const Marker begin = first.mark();
  launch_copy(*one, a, b, first.stream());
  const Marker end = first.mark();
  second.after(end);
  second.drain();
  EXPECT_TRUE(first.reached(end));
  EXPECT_GE(first.seconds_between(begin, end), 0);
}

TEST_F(GpuRuntime, StreamsHavePrioritiesAndDoNotWaitForTheDefaultOne) {
  Runtime& runtime = make();
  StreamLane compute(runtime), comm(runtime, StreamPriority::high);
  const auto stream = [](StreamLane& lane) { return static_cast<cudaStream_t>(lane.stream()); };
  EXPECT_EQ(fake_cuda::stream_priority(stream(compute)), 0);
  EXPECT_LT(fake_cuda::stream_priority(stream(comm)), 0);
  EXPECT_EQ(fake_cuda::find_flags(stream(compute)), unsigned{cudaStreamNonBlocking});
}

TEST_F(GpuRuntime, EventsAreReachedWhenTheirWorkIsDone) {
  Runtime& runtime = make();
  StreamLane lane(runtime);
  std::array<float, kCount> from{};
  const Memory to = runtime.device_memory(kBytes);
  runtime.copy(to.data(), from.data(), kBytes, lane.stream());
  from.fill(2.5F);  // pageable memory may be read late
  const Marker begin = lane.mark();
  const Marker marker = lane.mark();
  EXPECT_FALSE(lane.reached(marker));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "not ready is no error";
  lane.wait_for(marker);
  EXPECT_TRUE(lane.reached(marker));
  EXPECT_GE(lane.seconds_between(begin, marker), 0);
  EXPECT_EQ(reinterpret_cast<float*>(to.data())[kCount - 1], 2.5F);
}

TEST_F(GpuRuntime, StreamsWaitForEachOther) {
  Runtime& runtime = make();
  StreamLane compute(runtime), copy(runtime);
  const std::vector<float> three(kCount, 3.0F);
  const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes);
  runtime.copy(a.data(), three.data(), kBytes, copy.stream());
  compute.after(copy.mark());
  launch_copy(runtime, a, b, compute.stream());
  EXPECT_EQ(read(runtime, b, compute.stream()), three);
  runtime.fill(b.data(), 0, kBytes, compute.stream());
  EXPECT_EQ(read(runtime, b, compute.stream()), std::vector<float>(kCount, 0.0F));
}

TEST_F(GpuRuntime, HostTasksRunInTheirStreamsOrder) {
  Runtime& runtime = make();
  StreamLane lane(runtime);
  int ran = 0;
  lane.submit([&] { ++ran; });
  EXPECT_EQ(ran, 0);
  lane.drain();
  EXPECT_EQ(ran, 1);
  lane.submit([] { throw Error(ErrorKind::input, "a task's own"); });
  expect_error(ErrorKind::input, {"a task's own"}, [&] { lane.drain(); });
}

// Both lanes in one graph; its marks are those of the latest launch.
TEST_F(GpuRuntime, AStepIsOneGraph) {
  Runtime& runtime = make();
  StreamLane compute(runtime), comm(runtime, StreamPriority::high);
  const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes),
               c = runtime.device_memory(kBytes);
  {
    Replays replays(runtime, compute, comm, {});
    Marker begin, reduced, end;
    for (int step = 0; step < 7; ++step) {
      const std::vector<float> value(kCount, static_cast<float>(step));
      runtime.copy(a.data(), value.data(), kBytes, compute.stream());
      replays.run_step({1}, [&] {
        begin = compute.mark();
        launch_copy(runtime, a, b, compute.stream());
        comm.follow(compute);
        launch_copy(runtime, b, c, comm.stream());
        reduced = comm.mark();
        compute.after(reduced);
        end = compute.mark();
      });
      EXPECT_FALSE(comm.reached(reduced)) << step;
      EXPECT_EQ(read(runtime, c, compute.stream()), value) << step;
      EXPECT_TRUE(comm.reached(reduced)) << step;
      EXPECT_TRUE(compute.reached(end)) << step;
      EXPECT_GT(compute.seconds_between(begin, end), 0) << step;
    }
    EXPECT_EQ(fake_cuda::living().executables, 1U);
  }
  EXPECT_EQ(fake_cuda::living().graphs, 0U);
}

// A lone replica goes on with graphs of parts; what it noted while it tried is taken back.
TEST_F(GpuRuntime, AStepThatCannotBeCapturedIsQueued) {
  Runtime& runtime = make();
  StreamLane compute(runtime), comm(runtime);
  const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes);
  Replays replays(runtime, compute, comm, {});
  int noted = 0;
  const auto queue = [&] {
    ++noted;
    replays.run("a part", {2}, [&] { launch_copy(runtime, a, b, compute.stream()); });
    if (compute.in_graph()) runtime.synchronize_stream(comm.stream());
  };
  for (int step = 1; step <= 8; ++step) {
    const std::vector<float> value(kCount, static_cast<float>(step));
    runtime.copy(a.data(), value.data(), kBytes, compute.stream());
    replays.run_step({1}, queue, [&] { --noted; });
    EXPECT_EQ(read(runtime, b, compute.stream()), value) << step;
    EXPECT_EQ(noted, step);
  }
  EXPECT_EQ(fake_cuda::living().executables, 1U) << "the part's";
  Replays others(runtime, compute, comm, {});
  for (int step = 1; step <= 2; ++step) others.run_step({1}, queue);
  expect_error(ErrorKind::internal, {"cannot be captured", "--no-step-graph"},
               [&] { others.run_step({1}, queue); });
}

TEST_F(GpuRuntime, ACaptureThatFailsLeavesNoTrace) {
  Runtime& runtime = make();
  StreamLane compute(runtime), beside(runtime);
  const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes);
  const auto captures = [&](const std::function<void()>& work) {
    runtime.begin_capture(compute.stream());
    try {
      work();
      runtime.end_capture(compute.stream());
    } catch (const Error&) {
      runtime.cancel_capture(compute.stream());
      EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
      launch_copy(runtime, a, b, compute.stream());  // queued, not captured
      runtime.synchronize_stream(compute.stream());
      return false;
    }
    return true;
  };
  EXPECT_TRUE(captures([&] { launch_copy(runtime, a, b, compute.stream()); }));
  EXPECT_FALSE(captures([&] { runtime.device_memory(kBytes); }));
  EXPECT_FALSE(captures([&] { runtime.synchronize_stream(beside.stream()); }));
  EXPECT_FALSE(captures([&] { throw Error(ErrorKind::usage, "the work's own"); }));
  EXPECT_FALSE(captures([&] {  // a stream that does not come back
    const Event event = runtime.make_event();
    runtime.record(event, compute.stream());
    runtime.wait(beside.stream(), event);
    launch_copy(runtime, a, b, beside.stream());
    runtime.destroy_event(event);
  }));
  EXPECT_EQ(fake_cuda::living().graphs, 0U);
}

// Another replica's thread may allocate while this one captures.
TEST_F(GpuRuntime, ACaptureIsOfItsThreadOnly) {
  Runtime& runtime = make();
  StreamLane lane(runtime), copies(runtime);
  const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes);
  const std::vector<float> three(kCount, 3);
  runtime.copy(a.data(), three.data(), a.bytes(), lane.stream());
  runtime.begin_capture(lane.stream());
  launch_copy(runtime, a, b, lane.stream());
  std::thread([&] {
    const Memory more = runtime.device_memory(kBytes);
    read(runtime, more, copies.stream());
  }).join();
  const auto graph = runtime.end_capture(lane.stream());
  graph->launch(lane.stream());
  EXPECT_EQ(read(runtime, b, lane.stream()), three);
}

// What a kernel broke stays broken: each call says so, and what is given back throws nothing.
TEST_F(GpuRuntime, AnErrorOfAKernelStays) {
  Runtime& runtime = make();
  {
    StreamLane lane(runtime);
    const Memory a = runtime.device_memory(kBytes), b = runtime.device_memory(kBytes);
    fake_cuda::break_next_kernel(0);
    launch_copy(runtime, a, b, lane.stream());
    for (int i = 0; i < 2; ++i) {
      expect_error(ErrorKind::internal, {"cudaErrorIllegalAddress", "nvidia-smi"},
                   [&] { lane.drain(); });
    }
    expect_error(ErrorKind::internal, {"illegal memory access"},
                 [&] { runtime.device_memory(kBytes); });
  }
  runtime_.reset();
  fake_cuda::reset();  // only the end of the process gives it back
}

TEST_F(GpuRuntime, WhatFailsIsNamedByItsCall) {
  Runtime& runtime = make();
  for (const char* call : {"cudaMalloc", "cudaMemset", "cudaStreamCreateWithPriority"}) {
    fake_cuda::fail(call, cudaErrorIllegalAddress);
    expect_error(ErrorKind::internal, {call, "illegal memory access"}, [&] {
      const StreamLane lane(runtime);
      runtime.device_memory(kBytes);
    });
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << call;
  }
}

class NoProducts final : public Products {
  std::unique_ptr<ConvPlan> conv(const ConvRequest&) override { return nullptr; }
  std::unique_ptr<ConvPlan> conv_with(const ConvRequest&, ConvApart) override { return nullptr; }
  std::unique_ptr<MatmulPlan> matmul(const MatmulShape&) override { return nullptr; }
  std::unique_ptr<AttentionPlan> attention(const AttentionRequest&, AttentionWork) override {
    return nullptr;
  }
  std::size_t own_way(const OwnWays&) override { return 0; }
  std::string description() const override { return "no products"; }
};

// What a kernel is on the card, which takes the time that it is told instead.
class PlayedKernel {
 public:
  PlayedKernel(std::type_index type, std::function<void()> run)
      : kernel_(*static_cast<fake_cuda::Kernel*>(const_cast<void*>(device_kernels().at(type)))),
        before_(kernel_.run) {
    kernel_.run = [run = std::move(run)](const void*, const Grid&) { run(); };
  }
  ~PlayedKernel() { kernel_.run = before_; }
  PlayedKernel(const PlayedKernel&) = delete;
  PlayedKernel& operator=(const PlayedKernel&) = delete;

 private:
  fake_cuda::Kernel& kernel_;
  decltype(fake_cuda::Kernel::run) before_;
};

// Two runs of a card whose clocks have yet to rise agree, and say nothing of it.
TEST_F(GpuRuntime, ProbesACardThatIsAwake) {
  constexpr int kMultiprocessors = 8, kRuns = 6;
  constexpr double kCopy = 0.05;
  fake_cuda::reset({{{.multiprocessors = kMultiprocessors}}});
  const auto device = make_device_on(make_cuda_runtime(gpu(0)), std::make_unique<NoProducts>(), {});
  double time = 0;
  int runs = 0;
  // Copies come last and take no time of their own, so their events do.
  int events = 0;
  fake_cuda::set_clock([&] { return time += ++events > 2 * kRuns ? kCopy : 0; });
  const std::vector<double> asleep{0.04, 0.04, 0.03, 0.002};
  const PlayedKernel multiply(typeid(MultiplyAdd), [&] {
    const auto run = static_cast<std::size_t>(runs++);
    time += run < asleep.size() ? asleep[run] : 0.001;
  });
  const ProbeFacts probe = device->probe();
  EXPECT_EQ(runs, kRuns);
  const double operations = 2.0 * MultiplyAdd::kChains * 20000 * 256 * 8 * kMultiprocessors;
  EXPECT_DOUBLE_EQ(*probe.flops_per_second, operations / 0.001);
  EXPECT_DOUBLE_EQ(*probe.bytes_per_second, (256 << 20) / kCopy);
}

TEST_F(GpuRuntime, AsksForSharedMemoryThatIsNotGranted) {
  Runtime& runtime = make();
  StreamLane lane(runtime);
  int runs = 0;
  const PlayedKernel played(typeid(MultiplyAdd), [&] { ++runs; });
  for (const std::size_t kilobytes : {100, 150, 60}) {
    runtime.launch(MultiplyAdd{}, {1, 32, kilobytes << 10}, lane.stream());
  }
  lane.drain();
  EXPECT_EQ(runs, 3);
  expect_error(ErrorKind::internal, {"cudaFuncSetAttribute", "cudaErrorInvalidValue"}, [&] {
    runtime.launch(MultiplyAdd{}, {1, 32, 300 << 10}, lane.stream());
  });
  lane.drain();
}

// Loading may wait for the whole context: none is left to a launch.
TEST_F(GpuRuntime, KernelsAreLoadedBeforeTheyAreLaunched) {
  for (const auto& [type, kernel] : device_kernels()) {
    static_cast<fake_cuda::Kernel*>(const_cast<void*>(kernel))->loaded = false;
  }
  make();
  for (const auto& [type, kernel] : device_kernels()) {
    EXPECT_TRUE(static_cast<const fake_cuda::Kernel*>(kernel)->loaded) << type.name();
  }
}

}  // namespace
}  // namespace paceline::cuda
