// What ThreadSanitizer takes for a race on a GPU that the host plays: work of two streams, or of a
// stream and the host, that nothing orders, whenever it runs. Where there is no such sanitizer,
// what is in order must still be right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/plan/network.h"
#include "engine/plan/plan.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kFindsRaces = true;
#else
constexpr bool kFindsRaces = false;
#endif
constexpr int kTries = 20;  // two accesses at the same moment can miss each other

class Races : public testing::TestWithParam<bool> {
 protected:
  Races() {
    HostOptions options;
    options.threads = GetParam();
    runtime_ = make_host_runtime(options);
    first_ = runtime_->make_stream();
    second_ = runtime_->make_stream();
    event_ = runtime_->make_event();
    numbers_ = runtime_->device_memory(2 * sizeof(int));
    from_ = runtime_->pinned_memory(sizeof(int));
    *host() = 5;
  }
  ~Races() override {
    runtime_->destroy_event(event_);
    runtime_->destroy_stream(first_);
    runtime_->destroy_stream(second_);
  }
  int* host() const { return reinterpret_cast<int*>(from_.data()); }
  int* number(int index) const { return reinterpret_cast<int*>(numbers_.data()) + index; }
  // Writes the first number on one stream and reads it on the other.
  void write() { runtime_->copy(number(0), host(), sizeof(int), first_); }
  void read() { runtime_->copy(number(1), number(0), sizeof(int), second_); }
  void second_waits() {
    runtime_->record(event_, first_);
    runtime_->wait(second_, event_);
  }
  void first_waits() {
    runtime_->record(event_, second_);
    runtime_->wait(first_, event_);
  }
  void synchronize() {
    runtime_->synchronize_stream(first_);
    runtime_->synchronize_stream(second_);
  }
  // In a process of its own, which the sanitizer ends at the first race. It starts anew, as a fork
  // has no threads for the streams.
  static void expect_race(const std::function<void()>& work) {
    if (!kFindsRaces) return;
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
          for (int i = 0; i < kTries; ++i) work();
          std::_Exit(0);
        },
        [](int status) { return status != 0; }, "data race");
  }

  std::unique_ptr<Runtime> runtime_;
  Stream first_, second_;
  Event event_;
  Memory numbers_, from_;
};

INSTANTIATE_TEST_SUITE_P(Order, Races, testing::Bool(),
                         [](const auto& info) { return info.param ? "early" : "late"; });

TEST_P(Races, AWaitOrdersTwoStreams) {
  for (int i = 0; i < 5; ++i) {
    write();
    second_waits();
    read();
    first_waits();
  }
  synchronize();
  EXPECT_EQ(*number(1), 5);
}

TEST_P(Races, WithoutAWaitTwoStreamsRace) {
  expect_race([&] {
    write();
    read();
    synchronize();
  });
}

TEST_P(Races, TheHostMayWriteOnceItWaited) {
  write();
  runtime_->synchronize_stream(first_);
  *host() = 6;
  write();
  runtime_->record(event_, first_);
  runtime_->synchronize_event(event_);
  *host() = 7;
  EXPECT_EQ(*number(0), 6);
}

TEST_P(Races, WithoutAWaitTheHostRacesWithACopy) {
  expect_race([&] {
    write();
    *host() = 6;
    synchronize();
  });
}

TEST_P(Races, EdgesOrderNodesOfAGraph) {
  runtime_->begin_capture(first_);
  write();
  second_waits();
  read();
  first_waits();
  const auto graph = runtime_->end_capture(first_);
  for (int i = 0; i < 5; ++i) graph->launch(first_);
  synchronize();
  EXPECT_EQ(*number(1), 5);
}

TEST_P(Races, WithoutAnEdgeNodesOfAGraphRace) {
  expect_race([&] {
    runtime_->begin_capture(first_);
    second_waits();
    write();
    read();
    first_waits();
    const auto graph = runtime_->end_capture(first_);
    graph->launch(first_);
    synchronize();
  });
}

// As what follows a fork, which gets the memory of what it read.
TEST_P(Races, WhatDoesNotWaitForAForkRacesWithIt) {
  for (const bool captured : {false, true}) {
    expect_race([&] {
      if (captured) runtime_->begin_capture(first_);
      write();
      second_waits();
      read();
      write();
      first_waits();
      const auto graph = captured ? runtime_->end_capture(first_) : nullptr;
      if (graph) graph->launch(first_);
      synchronize();
    });
  }
}

TEST_P(Races, ProductsBesideEachOtherHaveWorkspacesOfTheirOwn) {
  const auto run = [&](bool shared) {
    const auto products = make_host_products(*runtime_);
    const ConvShape shape{.batch = 1, .height = 2, .width = 2, .in = 1, .out = 1};
    const auto plan = products->conv({shape, ConvPass::forward});
    const Memory memory = runtime_->device_memory(1024);
    const auto at = [&](std::size_t place) { return memory.data() + 128 * place; };
    write();
    second_waits();
    plan->run({at(0), at(1), at(2), at(3)}, first_);
    plan->run({at(0), at(1), at(4), at(shared ? 3 : 5)}, second_);
    first_waits();
    synchronize();
  };
  run(false);
  expect_race([&] { run(true); });
}

// Weight gradients run beside data gradients, and copies of batches beside all of it.
TEST_P(Races, AProgramHasNone) {
  Network network("n", {6, 6, 3}, 4);
  network.conv(8, 3, 1, 1).batch_norm(1e-5, 0.9).relu().conv(8, 3, 1, 1).relu().conv(4, 1);
  network.relu().flatten().dense(4);
  HostCounts counts;
  HostOptions options;
  options.counts = &counts;
  options.threads = GetParam();
  auto runtime = make_host_runtime(options);
  auto products = make_host_products(*runtime);
  const auto device = make_device_on(std::move(runtime), std::move(products), {});
  const Plan plan = make_plan(network, 2, device->precision(),
                              [&](const Operation& op) { return device->supports(op); });
  const Memory gradients = device->allocate(plan.arena_elements * sizeof(float));
  const auto program = device->compile(plan, gradients.data());
  std::vector<std::uint8_t> images(2 * plan.sample.elements(), 7);
  const std::vector<std::int32_t> labels{0, 1};
  Batch batch;
  batch.images = images.data();
  batch.labels = labels.data();
  batch.samples = batch.global_samples = 2;
  const UpdateRule rule = update_rule(Optimizer::adam, 0.01, 0.9, 1);
  for (batch.slot = 0; batch.slot < 6; ++batch.slot) {
    program->load(batch);
    program->run_step(&rule, [&] {
      program->forward(Mode::train);
      program->backward(static_cast<int>(plan.operations.size()) - 1, 0);
      program->update(rule, 0, plan.arena_elements);
    });
    program->wait_for_input();
    std::fill(images.begin(), images.end(), std::uint8_t(batch.slot));
  }
  EXPECT_TRUE(std::isfinite(program->take_sums().loss));
  EXPECT_EQ(counts.captures, 2U);
  EXPECT_EQ(counts.graph_launches, 2U);
}

}  // namespace
}  // namespace paceline::cuda
