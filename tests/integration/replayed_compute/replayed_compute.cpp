// The device `replayed_compute`: `cpu`, or a stand-in that computes nothing and sleeps as long as a
// real replica took. Sleeping needs no core, so a machine holds many replicas that communicate for
// real.
//
// The workload `layers` gives overlap and buckets something to do.
//
// PACELINE_RECORDED is a file of durations. Its first line is "ready" and, for each gradient in the
// order in which they become ready, the share of backward that has passed by then. Each further
// line is a step of a real replica: seconds of forward, backward and update. Without it, the
// replica computes. PACELINE_SLEEPER chooses the order of the steps. PACELINE_COMPUTE_CPU is the
// core of a replica, for its communication, too: all that a machine holds would choose the same.
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/random.h"
#include "engine/device/device.h"
#include "engine/device/host_program.h"
#include "workloads/workload.h"

namespace paceline {

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options);

namespace {

struct RecordedStep {
  double forward = 0, backward = 0, update = 0;
};

struct Recorded {
  std::vector<double> ready;  // shares of backward
  std::vector<RecordedStep> steps;
};

Recorded read_recorded(const std::string& path) {
  std::ifstream file(path);
  Recorded recorded;
  std::string line, word;
  std::getline(file, line);
  std::istringstream first(line);
  first >> word;
  for (double share = 0; first >> share;) recorded.ready.push_back(share);
  RecordedStep step;
  while (file >> step.forward >> step.backward >> step.update) recorded.steps.push_back(step);
  if (word != "ready" || recorded.steps.empty()) {
    throw Error(ErrorKind::input, "not a file of recorded durations", path);
  }
  return recorded;
}

// From one deadline to the next, so that what the caller does in between is part of the duration.
class Sleeper {
 public:
  void begin() { clock_gettime(CLOCK_MONOTONIC, &until_); }
  void sleep(double seconds) {
    const auto nanoseconds = static_cast<long>(seconds * 1e9) + until_.tv_nsec;
    until_.tv_sec += nanoseconds / 1'000'000'000;
    until_.tv_nsec = nanoseconds % 1'000'000'000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until_, nullptr) != 0) {
    }
  }

 private:
  timespec until_{};
};

// Its gradients are zero, so the replicas that compute train alone.
class ReplayedProgram final : public HostProgram<float> {
 public:
  ReplayedProgram(const Plan& plan, std::byte* gradients, Recorded recorded, std::uint32_t number)
      : HostProgram(plan, gradients),
        recorded_(std::move(recorded)),
        order_(1, Stream::order, number) {
    if (recorded_.ready.size() != plan.ready.size()) {
      throw Error(ErrorKind::input, "recorded durations of another network", plan.network);
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
  }

  void forward(Mode mode) override {
    sleeper_.begin();
    HostProgram::forward(mode);
    if (mode != Mode::train) return;
    const auto steps = static_cast<std::uint32_t>(recorded_.steps.size());
    step_ = &recorded_.steps[order_.below(steps)];
    sleeper_.sleep(step_->forward);
  }
  void backward(int from, int to) override {
    const bool first = from + 1 == static_cast<int>(plan().operations.size());
    if (first) {
      std::fill_n(gradients(), plan().arena_elements * sizeof(float), std::byte{});
      slept_ = 0;
    } else {
      sleeper_.begin();
    }
    double share = slept_;
    for (std::size_t i = 0; i < plan().ready.size(); ++i) {
      if (plan().ready[i].operation >= to) share = recorded_.ready[i];
    }
    sleeper_.sleep(step_->backward * (share - slept_));
    slept_ = share;
  }
  void update(const UpdateRule&, std::size_t begin, std::size_t end) override {
    const auto all = static_cast<double>(plan().arena_elements);
    sleeper_.begin();
    sleeper_.sleep(step_->update * static_cast<double>(end - begin) / all);
  }
  std::vector<std::string> implementations() const override { return {"all: sleeps"}; }

 private:
  void run_forward(const Operation&, int) override {}
  void run_backward(const Operation&, int) override {}
  void apply(const UpdateRule&, float*, const float*, float*, float*, std::size_t) override {}

  Recorded recorded_;
  RandomSequence order_;
  Sleeper sleeper_;
  const RecordedStep* step_ = nullptr;
  double slept_ = 0;  // share of this step's backward
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

class ReplayedComputeDevice final : public Device {
 public:
  explicit ReplayedComputeDevice(const DeviceOptions& options) : cpu_(make_cpu_device(options)) {}

  std::string_view name() const override { return "replayed_compute"; }
  std::string description() const override { return cpu_->description() + ", or sleeps"; }
  std::string libraries() const override { return cpu_->libraries(); }
  DType real() const override { return cpu_->real(); }
  DType activation() const override { return cpu_->activation(); }
  Support supports(const Operation& op) const override { return cpu_->supports(op); }
  Memory allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  ProbeFacts probe() override { return cpu_->probe(); }
  Lane& compute_lane() override { return cpu_->compute_lane(); }
  Lane& copy_lane() override { return cpu_->copy_lane(); }
  Lane& comm_lane() override { return cpu_->comm_lane(); }
  std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) override {
    const std::string recorded = variable("PACELINE_RECORDED");
    if (recorded.empty()) return cpu_->compile(plan, gradients);
    const auto number = static_cast<std::uint32_t>(std::atoi(variable("PACELINE_SLEEPER").c_str()));
    return std::make_unique<ReplayedProgram>(plan, gradients, read_recorded(recorded), number);
  }

 private:
  std::unique_ptr<Device> cpu_;
};

}  // namespace

std::unique_ptr<Device> make_replayed_compute_device(const DeviceOptions& options) {
  DeviceOptions mine = options;
  const std::string cpu = variable("PACELINE_COMPUTE_CPU");
  if (!cpu.empty()) {
    mine.comm_cpus = {};
    mine.cpus = {std::atoi(cpu.c_str())};
  }
  return std::make_unique<ReplayedComputeDevice>(mine);
}

// Gradients in several pieces of 200 to 260 kB, which become ready one after another.
Workload make_layers() {
  Network network("layers", {28, 28, 1}, 10);
  network.max_pool(2).flatten();
  for (int i = 0; i < 6; ++i) network.dense(256).relu();
  network.dense(10);
  return mnist_workload("layers", "MNIST, six dense layers of 256, Dense 10", std::move(network));
}

}  // namespace paceline
