#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/lane.h"
#include "engine/core/text.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

namespace {

constexpr unsigned kThreads = 256;

class CudaDevice final : public Device {
 public:
  CudaDevice(std::unique_ptr<Runtime> runtime, std::unique_ptr<Products> products,
             const CudaDeviceOptions& options)
      : options_(options),
        runtime_(std::move(runtime)),
        compute_(*runtime_),
        copy_(*runtime_, StreamPriority::high),
        comm_(*runtime_, StreamPriority::high),
        to_host_(*runtime_),
        to_device_(*runtime_),
        products_(std::move(products)),
        host_comm_([cpu = options.comm_cpu] {
          if (cpu >= 0) bind_to(cpu);
        }) {}

  std::string_view name() const override { return "cuda"; }
  std::string libraries() const override { return products_->description(); }
  std::string description() const override {
    return fmt::format("{}, {}", runtime_->description(), products_->description());
  }
  DType real() const override { return DType::f32; }
  DType activation() const override { return stored_as(options_.math); }
  Support supports(const Operation& op) const override {
    const bool is_of_tokens = op.kind == OpKind::embedding || op.kind == OpKind::gelu ||
                              op.kind == OpKind::layer_norm || op.kind == OpKind::attention;
    if (is_of_tokens && activation() == DType::f16) {
      return Support::no("networks of tokens are for fp32, tf32 and bf16");
    }
    const int width = op.heads > 0 ? op.out.channels / op.heads : 0;
    if (op.kind == OpKind::attention && width != 32 && width != 64) {
      return Support::no("a head's width is neither 32 nor 64");
    }
    constexpr int kLargestWindow = 15;  // whose places are distinguished by a byte
    if (op.pool && op.kind != OpKind::batch_norm) {
      return Support::no("pooling is fused only behind a batch_norm");
    }
    if (op.pool > kLargestWindow) return Support::no("windows are too large to be fused");
    return Support::yes();
  }
  MemoryKind memory_kind() const override { return MemoryKind::device; }
  Memory allocate(std::size_t bytes) override { return runtime_->device_memory(bytes); }
  Memory allocate_staging(std::size_t bytes) override { return runtime_->pinned_memory(bytes); }
  Memory pin(void* data, std::size_t bytes) override { return runtime_->pin(data, bytes); }
  void copy_to_host(void* host, const void* from, std::size_t bytes) override {
    copy_by(to_host_, host, from, bytes);
  }
  void copy_to_device(void* to, const void* host, std::size_t bytes) override {
    copy_by(to_device_, to, host, bytes);
  }
  ProbeFacts probe() override;
  Lane& compute_lane() override { return compute_; }
  Lane& copy_lane() override { return copy_; }
  Lane& comm_lane() override { return comm_; }
  Lane& host_comm_lane() override { return host_comm_; }
  std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) override {
    check_room(plan);
    return std::make_unique<CudaProgram>(plan, gradients, *runtime_, *products_, compute_, copy_,
                                         comm_, options_);
  }

 private:
  // Before the first of many allocations: what is known beforehand. Moments are the optimizer's,
  // two at most.
  void check_room(const Plan& plan) const {
    constexpr std::size_t kArenas = 3, kSlots = 2;
    const std::size_t need =
        plan.activation_bytes + kArenas * plan.arena_elements * sizeof(float) +
        kSlots * static_cast<std::size_t>(plan.batch) * plan.sample.elements() * sizeof(float);
    const std::size_t free = runtime_->free_bytes();
    if (need <= free) return;
    throw usage_error(fmt::format("a batch of {} needs {}, but only {} are free", plan.batch,
                                  format_bytes(static_cast<double>(need)),
                                  format_bytes(static_cast<double>(free))),
                      runtime_->description(),
                      "lower --batch-per-replica, or stop other programs on this GPU");
  }
  // Beside what the lanes do.
  void copy_by(StreamLane& lane, void* to, const void* from, std::size_t bytes) {
    runtime_->copy(to, from, bytes, lane.stream());
    runtime_->synchronize_stream(lane.stream());
  }
  // The shortest of runs until they have taken `awake` seconds and two in a row agree: of a card
  // that had nothing to do, the clocks rise only then.
  template <typename Work>
  double settled_seconds(int most_runs, double awake, Work work) {
    constexpr double kAgreement = 0.02;
    const OwnedEvent begin(*runtime_), end(*runtime_);
    double best = 1e9, last = 0, busy = 0;
    for (int i = 0; i < most_runs; ++i) {
      runtime_->record(begin, compute_.stream());
      work();
      runtime_->record(end, compute_.stream());
      compute_.drain();
      const double seconds = runtime_->seconds_between(begin, end);
      best = std::min(best, seconds);
      busy += seconds;
      if (busy >= awake && std::abs(seconds - last) <= kAgreement * last) break;
      last = seconds;
    }
    return best;
  }

  CudaDeviceOptions options_;
  std::unique_ptr<Runtime> runtime_;
  StreamLane compute_, copy_, comm_, to_host_, to_device_;
  std::unique_ptr<Products> products_;  // libraries keep the streams that they ran on
  ThreadLane host_comm_;
};

ProbeFacts CudaDevice::probe() {
  constexpr std::size_t kBlocksEach = 8, kCopied = std::size_t{256} << 20;
  const bool small = runtime_->multiprocessors() < 8;  // a host that plays a GPU, in tests
  const int rounds = small ? 8 : 20000, most_runs = small ? 3 : 1000;
  const double awake = small ? 1e9 : 0.1;
  const std::size_t bytes = small ? std::size_t{1} << 16 : kCopied;
  // The program lies there already. What is measured on the side must not be what does not fit.
  if (runtime_->free_bytes() < 3 * bytes) return {};
  const auto blocks = static_cast<unsigned>(kBlocksEach * runtime_->multiprocessors());
  const Memory out = runtime_->device_memory(blocks * kThreads * sizeof(float));
  const Memory from = runtime_->device_memory(bytes), to = runtime_->device_memory(bytes);
  const Grid grid{blocks, kThreads, 0};
  const double arithmetic = settled_seconds(most_runs, awake, [&] {
    runtime_->launch(MultiplyAdd{reinterpret_cast<float*>(out.data()), rounds}, grid,
                     compute_.stream());
  });
  const double copying = settled_seconds(
      most_runs, awake, [&] { runtime_->copy(to.data(), from.data(), bytes, compute_.stream()); });
  const double operations = 2.0 * MultiplyAdd::kChains * rounds * kThreads * blocks;
  return {operations / arithmetic, static_cast<double>(bytes) / copying};
}

}  // namespace

Math parse_math(std::string_view precision) {
  if (precision == "fp32") return Math::fp32;
  if (precision == "tf32") return Math::tf32;
  if (precision == "bf16") return Math::bf16;
  if (precision == "fp16") return Math::fp16;
  throw usage_error(
      fmt::format("device cuda computes in fp32, tf32, bf16 or fp16, not {}", precision), "",
      "give one of them by --precision");
}

CudaDeviceOptions cuda_options(const DeviceOptions& options) {
  CudaDeviceOptions wanted;
  wanted.math = parse_math(options.precision);
  wanted.replays = {options.is_on("graph", true), options.is_on("step_graph", true)};
  wanted.second_stream = !options.is_on("deterministic", false);
  if (!options.comm_cpus.empty()) wanted.comm_cpu = options.comm_cpus.front();
  return wanted;
}

std::unique_ptr<Device> make_device_on(std::unique_ptr<Runtime> runtime,
                                       std::unique_ptr<Products> products,
                                       const CudaDeviceOptions& options) {
  return std::make_unique<CudaDevice>(std::move(runtime), std::move(products), options);
}

}  // namespace paceline::cuda
