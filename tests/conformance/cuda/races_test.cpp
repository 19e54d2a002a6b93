// What ThreadSanitizer takes for a race on a GPU that the host plays: work of two streams, or of a
// stream and the host, that nothing orders, whenever it runs. Where there is no such sanitizer,
// what is in order must still be right.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kFindsRaces = true;
#else
constexpr bool kFindsRaces = false;
#endif

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
  // In a process of its own, which the sanitizer ends at the first race.
  static void expect_race(const std::function<void()>& work) {
    if (!kFindsRaces) return;
    EXPECT_EXIT(
        {
          work();
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

}  // namespace
}  // namespace paceline::cuda
