// What replicas compute on. A device compiles a plan into a program with fixed addresses, which
// allocates nothing after the first step. One Device object per replica.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/core/clock.h"
#include "engine/core/lane.h"
#include "engine/core/memory.h"
#include "engine/core/random.h"
#include "engine/device/gpu_driver.h"
#include "engine/device/update.h"
#include "engine/facts/training.h"
#include "engine/plan/plan.h"

namespace paceline {

struct DeviceOptions {
  std::string precision = "fp32";
  int threads = 1;        // compute threads
  std::vector<int> cpus;  // one per compute thread, for binding; empty: do not bind
  int replica_cpus = 0;   // those of its other threads, too; 0: it is not bound
  int comm_threads = 0;   // 1: the communication lane has a thread of its own
  std::vector<int> comm_cpus;
  // For GPU devices:
  int gpu = 0;  // index among the visible ones
  // Parameters that only such devices have, by name: {"graph", "false"}, {"tune", "thorough"}.
  std::map<std::string, std::string> settings = {};
  std::filesystem::path choices_file = {};  // where measured algorithm choices are stored

  std::string setting(const std::string& name, const std::string& otherwise) const {
    const auto found = settings.find(name);
    return found == settings.end() ? otherwise : found->second;
  }
  bool is_on(const std::string& name, bool otherwise) const {
    return setting(name, otherwise ? "true" : "false") == "true";
  }
};

// A staging slot: the samples of one replica in one step. Pointers stay valid until the step is
// done.
struct Batch {
  const std::uint8_t* images = nullptr;  // samples x elements of a sample
  DType image_type = DType::u8;          // f32: pixel values before division by 255
  const std::int32_t* labels = nullptr;
  const std::uint32_t* positions = nullptr;  // of each sample in the epoch's global order
  int samples = 0;                           // of this replica; 0 to the plan's batch
  int global_samples = 0;                    // of all replicas: the divisor of the loss
  std::uint32_t epoch = 0;
  PhiloxKey dropout_key;  // derived from the run's seed
  // Which of the device's two slots receives it. Negative: the slot that does not hold the previous
  // batch.
  int slot = -1;
};

enum class Mode { train, evaluate };

// How the gradients of several batches become those of one step. The first batch's gradients are
// stored, more are added to the store, and the store is added to the last ones.
enum class Accumulate { first, more, last };

// Sums over labels since the last take_sums(): of samples, or of their tokens.
struct LossSums {
  double loss = 0;     // cross-entropy with natural logarithm, not divided
  double correct = 0;  // labels with the largest output
  double samples = 0;  // labels
  // Samples whose label is among the five largest outputs; ties go to the lower class.
  double top5 = 0;

  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    top5 += other.top5;
    return *this;
  }
  std::array<double, 4> values() const { return {loss, correct, samples, top5}; }
  static LossSums of(const std::array<double, 4>& values) {
    return {values[0], values[1], values[2], values[3]};
  }
};

// State that a program carries from step to step: flat arenas of the plan's real type, in the
// device's own layout and memory. Valid as long as the program.
struct ProgramState {
  std::span<std::byte> parameters;
  std::span<std::byte> first, second;  // of the optimizer; may be empty
  std::span<std::byte> statistics;
  std::span<std::byte> loss_scale;  // a few bytes; empty without loss scaling
};

// First backward passes of a program, which also touch memory and choose kernels.
constexpr std::size_t kUntimedPasses = 3;

class Program {
 public:
  virtual ~Program() = default;

  // These queue work on the compute lane. `load` provides the batch of the next forward. `forward`
  // in evaluate mode applies no dropout and saves nothing.
  virtual void load(const Batch& batch) = 0;
  virtual void forward(Mode mode) = 0;
  void forward(const Batch& batch, Mode mode) {
    load(batch);
    forward(mode);
  }
  // Repeats operations `from` to `to` (inclusive) of the last forward, to time one of them. Sums
  // are counted again. Inputs that later operations overwrote have different values.
  virtual void repeat_forward(int from, int to) = 0;
  // Backward of operations `from` down to `to` (inclusive), for the last forward in train mode.
  virtual void backward(int from, int to) = 0;
  // Elements [begin, end) of the gradient arena, after their backward.
  virtual void accumulate(Accumulate which, std::size_t begin, std::size_t end) = 0;
  // Required if rule.clip_norm is set: call it when all gradients of a step are final, before its
  // updates. Computes the norm over the whole arena, in an order that is independent of threads and
  // buckets, so that equal gradients give equal bits.
  virtual void measure_gradients(const UpdateRule& rule) = 0;
  // Applies the optimizer to elements [begin, end) of the arenas.
  virtual void update(const UpdateRule& rule, std::size_t begin, std::size_t end) = 0;

  // Queues the rest of a step on the last loaded batch: `queue` does so through this program, the
  // device's lanes (sums) and markers. A device may capture this once and replay it as one graph.
  // It still calls `queue` in each step for its bookkeeping, so `queue` must not wait for the work
  // that it queues. `rule` is the rule of all updates in the step; null: no updates. The captured
  // work depends only on what all ranks share: the number of steps, their global batch, slot and
  // rule. A rank's own share of the batch follows from these. `undo_bookkeeping`, if not empty,
  // permits a device that could not capture the step to call `queue` a second time: it first takes
  // back what the caller noted. Only for a lone replica, as others have to capture the same.
  virtual void run_step(const UpdateRule* /*rule*/, const std::function<void()>& queue,
                        const std::function<void()>& /*undo_bookkeeping*/ = {}) {
    queue();
  }

  // Returns when the last loaded batch may be overwritten. Host devices read it in forward.
  virtual void wait_for_input() {}
  // Waits for the compute lane.
  virtual LossSums take_sums() = 0;

  // The gradient arena, in the plan's order and real type, on the device.
  virtual std::byte* gradients() = 0;

  // One parameter or its gradient, in canonical layout, on the host, as double.
  virtual std::vector<double> read_parameter(int index) const = 0;
  virtual std::vector<double> read_gradient(int index) const = 0;
  virtual void write_parameter(int index, std::span<const double> values) = 0;
  virtual void write_gradient(int index, std::span<const double> values) = 0;

  // The parameter arena, if the host can read it and equal values have equal bytes on every rank.
  // Else empty. Valid once the compute lane is drained.
  virtual std::span<const std::byte> host_parameters() const { return {}; }

  // A running average of this replica, by its index in Plan::statistics; otherwise like
  // read_parameter. The caller may modify them between steps.
  virtual std::vector<double> read_statistic(int index) const = 0;
  virtual void write_statistic(int index, std::span<const double> values) = 0;

  // Allocates now what updates would allocate on their first run. If replicas share a process, an
  // allocation on one GPU may wait for the others' work, and that work for a sum with this GPU.
  virtual void reserve(Optimizer, bool /*accumulates*/) {}

  // Waits for the compute lane. Allocates and initialises the optimizer's arenas if no update did.
  virtual ProgramState state(Optimizer optimizer) = 0;
  // Call after writing to state().
  virtual void state_written() {}
  // Converts one parameter, or its part of an optimizer arena, from the device's layout to the
  // canonical one and back. Both are in host memory. From any thread.
  virtual void to_canonical(int /*index*/, std::span<const std::byte> own,
                            std::byte* canonical) const {
    std::memcpy(canonical, own.data(), own.size());
  }
  virtual void from_canonical(int /*index*/, std::span<const std::byte> canonical,
                              std::byte* own) const {
    std::memcpy(own, canonical.data(), canonical.size());
  }

  // Records each operation that runs from now on; null: stops. Returns false if operations are only
  // queued here, so that their times are unknown.
  virtual bool trace(TraceRing*) { return false; }

  // Seconds of each operation's backward, by its index in the plan: means over the steps after the
  // first kUntimedPasses. Empty: there were none, or operations are only queued here.
  virtual std::vector<double> backward_seconds() const { return {}; }

  // Memory that operations share, in addition to the plan's arenas.
  virtual std::size_t scratch_bytes() const { return 0; }

  // What executes each operation: "conv2d + relu + max_pool: fused loops, avx512".
  virtual std::vector<std::string> implementations() const = 0;
  // A one-line warning for users about them. May be empty.
  virtual std::string warning() const { return {}; }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual std::string description() const = 0;  // libraries and instruction set in use
  // Libraries whose versions must be equal on all ranks.
  virtual std::string libraries() const { return ""; }
  virtual DType real() const = 0;  // see Plan
  virtual DType activation() const { return real(); }
  Precision precision() const { return {real(), activation()}; }
  virtual Support supports(const Operation& operation) const = 0;
  // Where gradients and parameters are.
  virtual MemoryKind memory_kind() const { return MemoryKind::host; }
  virtual Memory allocate(std::size_t bytes) = 0;
  // Pins host memory of others for copies, until the result is gone; empty if that is not possible.
  virtual Memory pin(void* /*data*/, std::size_t /*bytes*/) { return {}; }
  // Host memory that is best for handing over batches.
  virtual Memory allocate_staging(std::size_t bytes) { return host_memory(bytes); }
  // Synchronous. From any thread.
  virtual void copy_to_host(void* host, const void* from, std::size_t bytes) {
    std::memcpy(host, from, bytes);
  }
  virtual void copy_to_device(void* to, const void* host, std::size_t bytes) {
    std::memcpy(to, host, bytes);
  }
  // The current speed of this replica's threads, which takes about 30 ms. Empty: no room.
  virtual ProbeFacts probe() = 0;
  virtual Lane& compute_lane() = 0;
  virtual Lane& copy_lane() = 0;
  virtual Lane& comm_lane() = 0;
  // The communication lane for communicators that reduce on the host.
  virtual Lane& host_comm_lane() { return comm_lane(); }
  // `gradients`: the plan's arena_elements, zeroed, owned by the caller.
  virtual std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) = 0;
};

using DeviceFactory = std::unique_ptr<Device> (*)(const DeviceOptions&);

// Every device built into this program. Generated by the build.
const std::vector<Factory<DeviceFactory>>& device_table();

// The drivers of those devices that are GPUs, by device name.
const std::vector<Factory<DriverFactory>>& driver_table();

// Measures arithmetic and memory speed for Device::probe().

// `multiply_add(rounds)` computes on all of the replica's threads and returns its number of
// floating-point operations. `copy(to, from, bytes)` copies with all threads. Uses the best of
// three runs.
ProbeFacts timed_probe(const std::function<double(std::size_t rounds)>& multiply_add,
                       const std::function<void(std::byte*, const std::byte*, std::size_t)>& copy);

}  // namespace paceline
