// The device `cpu`: a replica is a fixed set of cores.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "engine/core/error.h"
#include "engine/core/lane.h"
#include "engine/core/text.h"
#include "engine/device/cpu/program.h"
#include "engine/device/device.h"

namespace paceline {

namespace {

using namespace cpu;

std::string wanted_isa() {
  const char* wanted = std::getenv("PACELINE_ISA");
  return wanted ? wanted : "";
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options)
      : activation_(options.precision == "bf16" ? DType::bf16 : DType::f32),
        kernels_(kernels_for(wanted_isa())),
        parallel_(options.threads, options.cpus) {
    if (options.comm_threads > 0) {
      const int cpu = options.comm_cpus.empty() ? -1 : options.comm_cpus.front();
      comm_thread_ = std::make_unique<ThreadLane>([cpu] {
        if (cpu >= 0) bind_to(cpu);
      });
    }
  }

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{}, own loops for {}, {}{}", library_version(), kernels_.isa,
                       counted(parallel_.threads(), "thread"), bf16_products());
  }
  // Ranks compare these: all ranks of a run take the same products.
  std::string libraries() const override {
    return library_version() + (activation_ == DType::bf16 ? bf16_products() : "");
  }
  DType real() const override { return DType::f32; }
  DType activation() const override { return activation_; }

  Support supports(const Operation& op) const override {
    if (op.kind == OpKind::attention && op.out.channels / op.heads % 16 != 0) {
      return Support::no("a head's width is no multiple of 16");
    }
    if (op.pool && !is_stem(op)) {
      return Support::no("pooling is fused only into a 3x3 convolution of one channel");
    }
    return activation_ == DType::bf16 ? supports_in_bf16(op) : Support::yes();
  }

  Memory allocate(std::size_t bytes) override { return host_memory(bytes); }
  ProbeFacts probe() override {
    std::vector<double> operations(static_cast<std::size_t>(parallel_.threads()));
    const bool has_own_rate = activation_ == DType::bf16 && kernels_.product.multiply_add;
    const auto multiply_add = has_own_rate ? kernels_.product.multiply_add : kernels_.multiply_add;
    return timed_probe(
        [&](std::size_t rounds) {
          parallel_.each([&](int thread) {
            operations[static_cast<std::size_t>(thread)] = multiply_add(rounds);
          });
          return std::accumulate(operations.begin(), operations.end(), 0.0);
        },
        [&](std::byte* to, const std::byte* from, std::size_t bytes) {
          parallel_.ranges(bytes, 4096, 4096, [&](std::size_t begin, std::size_t end) {
            std::memcpy(to + begin, from + begin, end - begin);
          });
        });
  }
  Lane& compute_lane() override { return inline_; }
  Lane& copy_lane() override { return inline_; }
  Lane& comm_lane() override {
    if (comm_thread_) return *comm_thread_;
    return inline_;
  }
  std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) override {
    return std::make_unique<CpuProgram>(plan, gradients, kernels_, parallel_);
  }

 private:
  std::string bf16_products() const {
    switch (kernels_.bf16_products) {
      case Bf16Products::pairs:
        return ", bf16 by pairs";
      case Bf16Products::widened:
        return ", bf16 widened to fp32";
      case Bf16Products::tiles:
        return ", bf16 by AMX";
      case Bf16Products::none:
        break;
    }
    return "";
  }

  // Planes are bf16, vectors and the loss fp32.
  static Support supports_in_bf16(const Operation& op) {
    if (op.kind == OpKind::conv && (op.relu || op.pool)) {
      return Support::no("convolutions are not fused in bf16");
    }
    return Support::yes();
  }

  DType activation_;
  const Kernels& kernels_;
  Parallel parallel_;
  InlineLane inline_;
  std::unique_ptr<ThreadLane> comm_thread_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options) {
  if (options.precision != "fp32" && options.precision != "bf16") {
    throw usage_error("device cpu computes in fp32 or bf16, not " + options.precision, "",
                      "give --precision fp32 or bf16, or --device reference for fp64");
  }
  check_library_threads();
  if (options.precision == "bf16" && !library_has_avx512()) {
    throw usage_error("bf16 needs an x86-64 CPU with AVX-512", "", "give --precision fp32");
  }
  return std::make_unique<CpuDevice>(options);
}

}  // namespace paceline
