// The optimizer over flat arenas on one thread, beside a triad that moves as many bytes. The number
// in a name is the bytes of the parameters; gradients and moments come on top.
#include <algorithm>

#include "engine/device/device.h"
#include "tests/bench/main.h"
#include "tests/bench/turns.h"
#include "tests/conformance/device/cases.h"

namespace paceline::bench {

namespace {

// A program with at least this many parameters, all zero, and gradients that are not.
struct Arena {
  explicit Arena(std::size_t elements)
      : device(conformance::make_device("cpu")),
        plan(make_plan(make_network(elements), 1, device->precision(),
                       [&](const Operation& op) { return device->supports(op); })),
        gradients(device->allocate(plan.arena_elements * sizeof(float))),
        program(device->compile(plan, gradients.data())) {
    std::fill_n(reinterpret_cast<float*>(gradients.data()), plan.arena_elements, 0.01F);
  }

  static Network make_network(std::size_t elements) {
    constexpr int kInputs = 16;
    const auto outputs = static_cast<int>((elements + kInputs - 1) / kInputs);
    Network network("arena", {1, 1, kInputs}, outputs);
    network.dense(outputs);
    return network;
  }

  std::unique_ptr<Device> device;
  Plan plan;
  Memory gradients;
  std::unique_ptr<Program> program;
};

// Parameters and state are read and written, the gradient is read.
std::size_t bytes_moved(Optimizer optimizer, std::size_t bytes) {
  return bytes * static_cast<std::size_t>(3 + 2 * state_arenas(optimizer));
}

void update(benchmark::State& state, Optimizer optimizer) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t elements = bytes / sizeof(float), moved = bytes_moved(optimizer, bytes);
  Arena arena(elements);
  TriadBound triad(moved);
  const UpdateRule rule = update_rule(optimizer, 0.001, 0.9, 10);
  take_turns(
      state, [&] { arena.program->update(rule, 0, elements); }, static_cast<double>(moved), triad);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(elements));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved));
}

}  // namespace

void register_benchmarks() {
  for (const char* name : {"sgd", "momentum", "adagrad", "adam"}) {
    benchmark::RegisterBenchmark(name, update, parse_optimizer(name))
        ->RangeMultiplier(4)
        ->Range(4 << 10, 64 << 20)
        ->UseManualTime();
  }
}

}  // namespace paceline::bench
