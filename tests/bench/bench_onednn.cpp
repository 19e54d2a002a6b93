// Operations that are Paceline's own on the cpu device, beside oneDNN's primitives for the same
// work: one thread, fp32 and, with AVX-512, bf16. oneDNN does nothing of what ours do on the way
// (sums for a batch_norm, a causal mask). The counter `bound` is oneDNN's time over ours. Dropout,
// embeddings, optimizers and clipping have no primitive.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#include "engine/device/cpu/kernels.h"
#include "engine/device/device.h"
#include "tests/bench/main.h"
#include "tests/bench/onednn_bound.h"
#include "tests/bench/turns.h"
#include "tests/conformance/device/cases.h"
#include "workloads/workload.h"

namespace paceline::bench {

namespace {

struct Subject {
  Network network;
  int batch;
  std::string precision;
};

std::unique_ptr<conformance::Replica> make_replica(const Subject& subject) {
  DeviceOptions options;
  options.precision = subject.precision;
  for (const auto& row : device_table()) {
    if (std::string_view(row.name) != "cpu") continue;
    return std::make_unique<conformance::Replica>(row.make(options), subject.network, subject.batch,
                                                  true);
  }
  throw std::runtime_error("no device cpu");
}

void run(benchmark::State& state, const Subject& subject, int index, Direction direction) {
  const auto replica = make_replica(subject);
  Program& program = replica->program();
  const Plan& plan = replica->plan();
  const auto bound = make_onednn_bound(plan.operations[static_cast<std::size_t>(index)],
                                       subject.batch, plan.activation, direction);
  if (!bound) return state.SkipWithError("oneDNN has no such primitive");
  const conformance::RandomBatch inputs(subject.network, subject.batch, subject.batch, 1);
  program.forward(inputs.batch(), Mode::train);
  if (direction == Direction::forward) {
    return take_turns(
        state, [&] { program.repeat_forward(index, index); }, 1, *bound);
  }
  program.backward(static_cast<int>(plan.operations.size()) - 1, index);
  take_turns(
      state, [&] { program.backward(index, index); }, 1, *bound);
}

// A bottleneck block of a stage of ResNet-50 and what stands before it.
Network make_stage(const std::string& name, int side, int channels) {
  Network network(name, {side, side, 3}, 10);
  const auto norm = [&](Network& to) -> Network& { return to.batch_norm(1e-5, 0.9); };
  norm(network.conv(4 * channels, 3, 1, 1)).relu();
  const int start = network.last();
  norm(network.conv(channels, 1)).relu();
  norm(network.conv(channels, 3, 1, 1)).relu();
  norm(network.conv(4 * channels, 1));
  network.add(start).relu().global_average_pool().dense(10);
  return network;
}

void run_loss(benchmark::State& state) {
  constexpr std::size_t kRows = 16, kClasses = 50257;
  const auto bound = make_onednn_loss(kRows, kClasses);
  std::vector<float> rows(kRows * kClasses, 0.5F);
  const char* isa = std::getenv("PACELINE_ISA");
  const cpu::Kernels& kernels = cpu::kernels_for(isa ? isa : "");
  const auto work = [&] {
    for (std::size_t i = 0; i < kRows; ++i) {
      kernels.token_loss(rows.data() + i * kClasses, kClasses, i, 1, true);
    }
  };
  take_turns(state, work, 1, *bound);
}

}  // namespace

void register_benchmarks() {
#if defined(__SSE__)
  // Gradients that are computed in place shrink from one repetition to the next, in training not.
  _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormals are zero
#endif
  std::vector<Subject> subjects;
  for (const char* precision : {"fp32", "bf16"}) {
    subjects.push_back({make_stage("stage-2", 75, 64), 4, precision});
    subjects.push_back({make_stage("stage-4", 19, 256), 8, precision});
    Network stem("stem", {150, 150, 3}, 10);
    stem.conv(64, 7, 2, 3).batch_norm(1e-5, 0.9).relu().max_pool(3, 2, 1);
    subjects.push_back({stem.global_average_pool().dense(10), 4, precision});
    subjects.push_back(
        {gpt_workload("gpt", "", {1, 12, 768, 256, 1024}, "").network, 2, precision});
  }
  for (const auto& row : workload_table()) {
    if (std::string_view(row.name) != "mnist-cnn") continue;
    subjects.push_back({row.make().network, 64, "fp32"});
  }
  for (const Subject& subject : subjects) {
    std::unique_ptr<conformance::Replica> replica;
    try {
      replica = make_replica(subject);
    } catch (const std::exception& error) {  // these loops have no bf16
      fmt::print(stderr, "{} in {}: {}\n", subject.network.name(), subject.precision, error.what());
      continue;
    }
    const auto& operations = replica->plan().operations;
    for (std::size_t i = 1; i + 1 < operations.size(); ++i) {
      for (const auto direction : {Direction::forward, Direction::backward}) {
        if (!make_onednn_bound(operations[i], 1, DType::f32, direction)) continue;
        const std::string name = subject.precision + "/" + subject.network.name() + "/" +
                                 operations[i].text() + " " + std::to_string(operations[i].kernel) +
                                 "/" + (direction == Direction::forward ? "forward" : "backward");
        benchmark::RegisterBenchmark(name.c_str(), run, subject, static_cast<int>(i), direction)
            ->UseManualTime();
      }
    }
  }
  benchmark::RegisterBenchmark("fp32/gpt/token_loss/both", run_loss)->UseManualTime();
}

}  // namespace paceline::bench
