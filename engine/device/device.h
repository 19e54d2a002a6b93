// What replicas compute on. A device compiles a plan into a program: fixed addresses, nothing
// allocated after the first step. One Device object a replica.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/lane.h"
#include "engine/core/memory.h"
#include "engine/core/random.h"
#include "engine/core/support.h"
#include "engine/core/trace.h"
#include "engine/device/update.h"
#include "engine/plan/plan.h"

namespace paceline {

struct DeviceOptions {
  std::string precision = "fp32";
  int threads = 1;              // that compute
  std::vector<int> cpus;        // to bind them to, one each; empty: leave them
  std::vector<int> setup_cpus;  // all of the replica's: before the first step nothing else runs
  int comm_threads = 0;         // 1: the communication lane is a thread of its own
  std::vector<int> comm_cpus;
  // Of a device of GPUs:
  int gpu = 0;                              // index among the visible ones
  bool graphs = true;                       // parts of a step are captured once and queued as one
  bool step_graphs = true;                  // so are whole steps
  bool fused_sums = false;                  // batch_norm's sums in convolutions, where faster
  bool deterministic = false;               // the same bits in every run, at a cost
  std::filesystem::path choices_file = {};  // where measured choices of algorithms are kept
};

// A staging slot: what one replica sees in one step. Pointers stay valid until the step is done.
struct Batch {
  const std::uint8_t* images = nullptr;  // samples x elements of a sample
  DType image_type = DType::u8;          // of images; f32: pixel values, not yet divided by 255
  const std::int32_t* labels = nullptr;
  const std::uint32_t* positions = nullptr;  // of each sample in the epoch's global order
  int samples = 0;                           // of this replica; at most the plan's batch, may be 0
  int global_samples = 0;                    // of all replicas: the loss is divided by it
  std::uint32_t epoch = 0;
  PhiloxKey dropout_key;  // of the run's seed
  // Of a device's two slots the one that it is copied to; negative: the one that the last batch is
  // not in.
  int slot = -1;
};

enum class Mode { train, evaluate };

// The gradients of several batches as those of one step: of the first they are put aside, those of
// more are added there, and what lies there is added to the last ones.
enum class Accumulate { first, more, last };

// Sums over samples since the last take_sums().
struct LossSums {
  double loss = 0;     // cross-entropy, natural logarithm, not divided
  double correct = 0;  // samples whose largest output is the label
  double samples = 0;
  double top5 = 0;  // samples whose label is among the five largest outputs; of equals, the first

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

// What a program carries from one step to the next: flat arenas of the plan's real type, in the
// device's own layout and memory. Valid as long as the program.
struct ProgramState {
  std::span<std::byte> parameters;
  std::span<std::byte> first, second;  // of the optimizer; empty where it has none
  std::span<std::byte> statistics;
  std::span<std::byte> loss_scale;  // a few bytes; empty where the loss is not scaled
};

class Program {
 public:
  virtual ~Program() = default;

  // Queue on the compute lane. `load` hands over the batch of the next forward; `forward` in
  // evaluate mode applies no dropout and saves nothing.
  virtual void load(const Batch& batch) = 0;
  virtual void forward(Mode mode) = 0;
  void forward(const Batch& batch, Mode mode) {
    load(batch);
    forward(mode);
  }
  // Operations `from` to `to`, both included, of the last forward once more: for timing one by
  // itself. Sums count again; an input that later operations wrote over has other values.
  virtual void repeat_forward(int from, int to) = 0;
  // Backward of operations `from` down to `to`, both included, for the last forward in train mode.
  virtual void backward(int from, int to) = 0;
  // Of elements [begin, end) of the gradient arena, behind their backward.
  virtual void accumulate(Accumulate which, std::size_t begin, std::size_t end) = 0;
  // Where rule.clip_norm is set, once all gradients of a step are final and before its updates:
  // their norm over the whole arena, whose parts are added in an order of their own, so that equal
  // gradients give equal bits whatever the threads and buckets.
  virtual void measure_gradients(const UpdateRule& rule) = 0;
  // The optimizer over elements [begin, end) of the arenas.
  virtual void update(const UpdateRule& rule, std::size_t begin, std::size_t end) = 0;

  // Queues the rest of a step on the batch loaded last: `queue` does so, by calls of this program,
  // sums on the device's lanes and markers there. A device may capture that and queue it as one
  // from then on; `queue` is called in each step all the same, for the books that are kept on the
  // way, and must not wait for what it queues. `rule` is that of all of its updates; null: it has
  // none. What is captured follows from what ranks share: the count of steps, their global
  // batch, slot and rule; a rank's own part of the batch follows from these.
  virtual void run_step(const UpdateRule* rule, const std::function<void()>& queue) {
    static_cast<void>(rule);
    queue();
  }

  // Returns once the batch loaded last may be written over; host devices read it in forward.
  virtual void wait_for_input() {}
  // Waits for the compute lane.
  virtual LossSums take_sums() = 0;

  // The arena, in the plan's order and its real type, on the device.
  virtual std::byte* gradients() = 0;

  // One parameter or its gradient in canonical layout, on the host, as double.
  virtual std::vector<double> read_parameter(int index) const = 0;
  virtual std::vector<double> read_gradient(int index) const = 0;
  virtual void write_parameter(int index, std::span<const double> values) = 0;
  virtual void write_gradient(int index, std::span<const double> values) = 0;

  // The parameter arena where the host can read it and equal values are equal bytes on every rank;
  // empty: it lies elsewhere. As it stands once the compute lane is drained.
  virtual std::span<const std::byte> host_parameters() const { return {}; }

  // A running average of this replica's batch_norms by its index in Plan::statistics, as
  // read_parameter; the caller may change them between steps.
  virtual std::vector<double> read_statistic(int index) const = 0;
  virtual void write_statistic(int index, std::span<const double> values) = 0;

  // Allocates what updates need otherwise when they first run. Where replicas share a process an
  // allocation on one GPU may wait for the others' work, and that for a sum with this one.
  virtual void reserve(Optimizer optimizer, bool accumulates) {
    static_cast<void>(optimizer);
    static_cast<void>(accumulates);
  }

  // Waits for the compute lane. The optimizer's arenas are made, with their initial values, where
  // no update has made them.
  virtual ProgramState state(Optimizer optimizer) = 0;
  // The caller wrote to state().
  virtual void state_written() {}
  // One parameter, or what an arena of the optimizer has for it, from the device's layout to the
  // canonical one and back; both on the host. From any thread.
  virtual void to_canonical(int index, std::span<const std::byte> own, std::byte* canonical) const {
    static_cast<void>(index);
    std::memcpy(canonical, own.data(), own.size());
  }
  virtual void from_canonical(int index, std::span<const std::byte> canonical,
                              std::byte* own) const {
    static_cast<void>(index);
    std::memcpy(own, canonical.data(), canonical.size());
  }

  // Notes each operation that runs from now on; null: no more. False: operations are only queued
  // here, and their times are not known.
  virtual bool trace(TraceRing* ring) {
    static_cast<void>(ring);
    return false;
  }

  // Memory beside the plan's arenas that operations share.
  virtual std::size_t scratch_bytes() const { return 0; }

  // What runs each operation: "conv2d + relu + max_pool: fused loops, avx512".
  virtual std::vector<std::string> implementations() const = 0;
  // What a user should know of them: one line, or empty.
  virtual std::string warning() const { return {}; }
};

// How fast this replica's threads are at this moment: a record without it cannot be compared.
struct Probe {
  double flops_per_second = 0;  // fused multiply-adds of the real type, as two each
  double bytes_per_second = 0;  // copied, counted once
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual std::string description() const = 0;          // libraries and instruction set in use
  virtual std::string libraries() const { return ""; }  // those whose version all ranks must share
  virtual DType real() const = 0;                       // see Plan
  virtual DType activation() const { return real(); }
  Precision precision() const { return {real(), activation()}; }
  virtual Support supports(const Operation& operation) const = 0;
  virtual MemoryKind memory_kind() const { return MemoryKind::host; }  // of what follows
  virtual Memory allocate(std::size_t bytes) = 0;
  // Host memory that batches are best handed over in.
  virtual Memory allocate_staging(std::size_t bytes) { return host_memory(bytes); }
  // At once; from any thread.
  virtual void copy_to_host(void* host, const void* from, std::size_t bytes) {
    std::memcpy(host, from, bytes);
  }
  virtual void copy_to_device(void* to, const void* host, std::size_t bytes) {
    std::memcpy(to, host, bytes);
  }
  virtual Probe probe() = 0;  // takes about 30 ms
  virtual Lane& compute_lane() = 0;
  virtual Lane& copy_lane() = 0;
  virtual Lane& comm_lane() = 0;
  // For communicators that reduce on the host.
  virtual Lane& host_comm_lane() { return comm_lane(); }
  // `gradients`: the plan's arena_elements, zeroed, owned by the caller.
  virtual std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) = 0;
};

using DeviceFactory = std::unique_ptr<Device> (*)(const DeviceOptions&);

}  // namespace paceline
