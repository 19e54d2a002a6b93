// What it costs to know why a run failed: everything that a training step does for the flight ring,
// the control socket and the stall monitor, beside that step of mnist-mlp on one thread.
#include <benchmark/benchmark.h>

#include <memory>

#include "engine/comm/checks/stall_monitor.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/comm/rendezvous/server.h"
#include "engine/comm/wrappers/recorded/recorded_communicator.h"
#include "engine/core/clock.h"
#include "engine/train/reducer.h"
#include "tests/bench/main.h"
#include "tests/conformance/device/cases.h"
#include "tests/support/communicators.h"
#include "tests/support/scratch.h"
#include "workloads/workload.h"

namespace paceline::bench {

namespace {

constexpr int kBatch = 64;
constexpr int kHookSteps = 2000, kSteps = 20;  // in a turn

BootstrapAddress loopback() {
  BootstrapAddress where;
  where.host = "127.0.0.1";
  where.ports = {0};
  where.token = "bench";
  where.ranks = 1;
  return where;
}

// A rank's control socket to a store of its own.
struct Line {
  Line() : server(loopback(), 1), control(address(), 0, 10, [](int, const std::string&) {}) {}
  BootstrapAddress address() const {
    BootstrapAddress where = loopback();
    const std::string text = server.address();
    where.ports = {static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1)))};
    return where;
  }
  StoreServer server;
  LivenessConnection control;
};

struct Subject {
  Subject()
      : network(find("mnist-mlp")),
        replica(conformance::make_device("cpu"), network, kBatch, true),
        inputs(network, kBatch, kBatch, 1),
        buckets(make_buckets(replica.plan(), 8, 1)),
        recording(std::make_shared<Recording>()),
        stall_monitor({}) {
    recording->rings.push_back(std::make_shared<FlightRing>(
        FlightRing::Identity{0, 2, 0, "bench", "bench"}, scratch.path()));
    recording->control = &line.control;
    recording->stall_monitor = &stall_monitor;
    stall_monitor.watch(recording->rings);
    communicator =
        std::make_unique<RecordedCommunicator>(std::make_unique<IdleCommunicator>(2), recording, 0);
  }

  static Network find(std::string_view name) {
    for (const auto& row : workload_table()) {
      if (name == row.name) return row.make().network;
    }
    throw Error(ErrorKind::internal, "no such workload", std::string(name));
  }

  void step() {
    replica.program().forward(inputs.batch(), Mode::train);
    replica.program().backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
    replica.program().update(update_rule(Optimizer::adam, 0.001, 0.9, 10), 0,
                             replica.plan().arena_elements);
  }

  // As the trainer and the reducer call them.
  void hooks(Lane& lane, std::uint64_t number) {
    communicator->supervision().note_step(number);
    { const StreamWait wait(*communicator, "the steps before"); }
    for (const Bucket& bucket : buckets) {
      communicator->all_reduce(nullptr, bucket.end - bucket.begin, DType::f32, lane, bucket.label);
    }
  }

  Network network;
  conformance::Replica replica;
  conformance::RandomBatch inputs;
  std::vector<Bucket> buckets;
  Scratch scratch;
  Line line;
  std::shared_ptr<Recording> recording;
  StallMonitor stall_monitor;
  std::unique_ptr<RecordedCommunicator> communicator;
};

void hooks_of_a_step(benchmark::State& state, Lane& lane) {
  Subject subject;
  double hooks = 0, steps = 0;
  std::uint64_t turns = 0, number = 0;
  subject.step();
  for (auto _ : state) {
    const double start = now_seconds();
    for (int i = 0; i < kHookSteps; ++i) subject.hooks(lane, ++number);
    lane.drain();
    const double between = now_seconds();
    for (int i = 0; i < kSteps; ++i) subject.step();
    hooks += (between - start) / kHookSteps;
    steps += (now_seconds() - between) / kSteps;
    ++turns;
    state.SetIterationTime((between - start) / kHookSteps);
  }
  state.counters["step_seconds"] = steps / static_cast<double>(turns);
  state.counters["buckets"] = static_cast<double>(subject.buckets.size());
  state.counters["share_of_step"] = hooks / steps;
}

}  // namespace

void register_benchmarks() {
  benchmark::RegisterBenchmark("hooks/inline",
                               [](benchmark::State& state) {
                                 InlineLane lane;
                                 hooks_of_a_step(state, lane);
                               })
      ->UseManualTime()
      ->Iterations(30);
  benchmark::RegisterBenchmark("hooks/thread",
                               [](benchmark::State& state) {
                                 ThreadLane lane;
                                 hooks_of_a_step(state, lane);
                               })
      ->UseManualTime()
      ->Iterations(30);
}

}  // namespace paceline::bench
