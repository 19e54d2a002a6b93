// The host that plays a GPU: it is as unkind as CUDA permits, so that what our code does not wait
// for shows.
#include <gtest/gtest.h>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/lane.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {
namespace {

class Emulated : public testing::TestWithParam<bool> {
 protected:
  Emulated() {
    options_.counts = &counts_;
    options_.threads = GetParam();
    restart();
    event_ = runtime_->make_event();
  }
  ~Emulated() override {
    runtime_->destroy_event(event_);
    runtime_->destroy_stream(first_);
    runtime_->destroy_stream(second_);
  }
  void restart() {
    runtime_ = make_host_runtime(options_);
    first_ = runtime_->make_stream();
    second_ = runtime_->make_stream();
  }
  void copy(int& to, const int& from, Stream stream) {
    runtime_->copy(&to, &from, sizeof to, stream);
  }

  HostCounts counts_;
  HostOptions options_;
  std::unique_ptr<Runtime> runtime_;
  Stream first_, second_;
  Event event_;
};

INSTANTIATE_TEST_SUITE_P(Order, Emulated, testing::Bool(),
                         [](const auto& info) { return info.param ? "early" : "late"; });

TEST_P(Emulated, AStreamThatWaitsComesAfter) {
  int from = 1, between = 0, to = 0;
  for (int round = 2; round < 50; ++round) {
    from = round;
    copy(between, from, first_);
    runtime_->record(event_, first_);
    runtime_->wait(second_, event_);
    copy(to, between, second_);
    runtime_->synchronize_stream(second_);
    EXPECT_EQ(to, round);
  }
}

TEST_P(Emulated, WhoAsksOftenEnoughIsReportedThatItIsDone) {
  int from = 1, to = 0;
  EXPECT_TRUE(runtime_->done(event_)) << "it was never recorded";
  for (int i = 0; i < 5; ++i) copy(to, from, first_);
  runtime_->record(event_, first_);
  while (!runtime_->done(event_)) {
  }
  EXPECT_EQ(to, 1);
}

TEST_P(Emulated, FreeingMemoryWaitsForAllStreams) {
  int from = 1, to = 0;
  copy(to, from, first_);
  runtime_->device_memory(8);
  EXPECT_EQ(to, 1);
}

TEST_P(Emulated, TheWorkOfADestroyedStreamRemains) {
  int from = 1, to = 0;
  const Stream stream = runtime_->make_stream();
  copy(to, from, stream);
  runtime_->destroy_stream(stream);
  runtime_.reset();
  EXPECT_EQ(to, 1);
  restart();  // for the fixture's end
}

TEST_P(Emulated, AHostFunctionMustNotCallCuda) {
  struct Called {
    Runtime& runtime;
    Stream stream;
  } called{*runtime_, second_};
  runtime_->host_task(
      [](void* data) {
        const Called& it = *static_cast<Called*>(data);
        expect_error(ErrorKind::internal, {"a stream's host function calls CUDA"},
                     [&] { it.runtime.synchronize_stream(it.stream); });
      },
      &called, first_);
  runtime_->synchronize_stream(first_);
}

TEST_P(Emulated, FreeingMemorySpoilsACapture) {
  std::unique_ptr<Memory> memory = std::make_unique<Memory>(runtime_->device_memory(8));
  runtime_->begin_capture(first_);
  memory.reset();
  expect_error(ErrorKind::internal, {"frees memory while a stream is captured"},
               [&] { runtime_->end_capture(first_); });
  runtime_->cancel_capture(first_);
}

// The host looks at what a copy has yet to write, which ThreadSanitizer rightly takes for a race.
class Late : public Emulated {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "races on purpose";
#endif
  }
};
INSTANTIATE_TEST_SUITE_P(Order, Late, testing::Values(false));

TEST_P(Late, NothingRunsBeforeSomebodyWaits) {
  int from = 1, to = 0;
  copy(to, from, first_);
  runtime_->record(event_, first_);
  runtime_->synchronize_stream(second_);
  EXPECT_EQ(to, 0);
  from = 2;  // before the copy read it
  runtime_->synchronize_event(event_);
  EXPECT_EQ(to, 2);
}

// CUDA destroys a stream at once, and its work goes on.
TEST_P(Late, ALaneEndsWithItsWorkOnTheHost) {
  bool ran = false;
  {
    StreamLane lane(*runtime_);
    lane.submit([&ran] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

TEST_P(Late, AWaitIsForTheLastRecordingBeforeIt) {
  int from = 1, to = 0;
  runtime_->record(event_, first_);
  runtime_->wait(second_, event_);
  copy(to, from, first_);
  runtime_->record(event_, first_);
  runtime_->synchronize_stream(second_);
  EXPECT_EQ(to, 0);
  runtime_->synchronize_stream(first_);  // while what it writes to exists
}

TEST_P(Late, WhoQueuesMoreThanAStreamTakesRunsTheFirst) {
  options_.most_queued = 2;
  restart();
  const int from = 1;
  std::vector<int> to(5);
  for (int& each : to) copy(each, from, first_);
  EXPECT_EQ(to, (std::vector<int>{1, 1, 1, 0, 0}));
  runtime_->synchronize_stream(first_);  // while what it writes to exists
}

TEST_P(Late, NodesOfAGraphRunInAnyOrderThatItsEdgesAllow) {
  std::vector<int> order;
  struct Node {
    std::vector<int>* order;
    int number;
  };
  std::vector<Node> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back({&order, i});
  const auto add = [&](int number, Stream stream) {
    runtime_->host_task(
        [](void* data) {
          const auto* node = static_cast<Node*>(data);
          node->order->push_back(node->number);
        },
        &nodes[static_cast<std::size_t>(number)], stream);
  };
  runtime_->begin_capture(first_);
  add(0, first_);
  runtime_->record(event_, first_);
  runtime_->wait(second_, event_);
  add(1, first_);
  add(2, second_);
  runtime_->record(event_, second_);
  runtime_->wait(first_, event_);
  add(3, first_);
  const auto graph = runtime_->end_capture(first_);
  int swapped = 0;
  for (int i = 0; i < 20; ++i) {
    order.clear();
    graph->launch(first_);
    EXPECT_TRUE(order.empty());
    runtime_->synchronize_stream(first_);
    ASSERT_EQ(order.size(), 4U);
    EXPECT_EQ(order.front(), 0);
    EXPECT_EQ(order.back(), 3);
    swapped += order[1] == 2 ? 1 : 0;
  }
  EXPECT_GT(swapped, 0);
  EXPECT_LT(swapped, 20);
}

TEST_P(Late, AnEventThatAGraphHasYetToRecordIsNotAskedFor) {
  runtime_->begin_capture(first_);
  runtime_->record_in_graph(event_, first_);
  const auto graph = runtime_->end_capture(first_);
  for (int i = 0; i < 2; ++i) {  // that of an earlier launch is no answer, either
    graph->launch(first_);
    expect_error(ErrorKind::internal, {"a graph has yet to record"},
                 [&] { static_cast<void>(runtime_->done(event_)); });
    expect_error(ErrorKind::internal, {"a graph has yet to record"},
                 [&] { runtime_->synchronize_event(event_); });
    runtime_->synchronize_stream(first_);
    EXPECT_TRUE(runtime_->done(event_));
  }
}

std::unique_ptr<Device> device_on(const HostOptions& options) {
  auto runtime = make_host_runtime(options);
  auto products = make_host_products(*runtime);
  return make_device_on(std::move(runtime), std::move(products), {});
}

// Unless two kernels at once were proven to change no bit on a card.
TEST(EmulatedDevice, DeterministicRunsUseOneStream) {
  DeviceOptions options;
  EXPECT_TRUE(cuda_options(options).second_stream);
  options.settings["deterministic"] = "true";
  EXPECT_FALSE(cuda_options(options).second_stream);
}

// Where the program left no room, what would be measured beside the run is not.
TEST(EmulatedDevice, ProbesOnlyWhereThereIsRoom) {
  HostCounts counts;
  HostOptions options;
  options.counts = &counts;
  EXPECT_GT(device_on(options)->probe().flops_per_second, 0);
  EXPECT_EQ(counts.device_bytes, 0U);
  options.memory_bytes = 100000;
  const std::size_t before = counts.allocations;
  const ProbeFacts probe = device_on(options)->probe();
  EXPECT_FALSE(probe.flops_per_second);
  EXPECT_FALSE(probe.bytes_per_second);
  EXPECT_EQ(counts.allocations, before);
}

TEST(EmulatedDevice, MemoryThatDoesNotFitIsAnError) {
  HostOptions options;
  options.memory_bytes = 1000;
  const auto runtime = make_host_runtime(options);
  const Memory most = runtime->device_memory(900);
  expect_error(ErrorKind::usage, {"another 101 bytes do not fit"},
               [&] { runtime->device_memory(101); });
  EXPECT_EQ(runtime->free_bytes(), 100U);
}

// What other ranks or the next batch wait for goes first.
TEST(EmulatedDevice, CommunicationAndCopiesHavePriority) {
  const auto device = device_on({});
  EXPECT_EQ(stream_priority(device->comm_lane().native()), StreamPriority::high);
  EXPECT_EQ(stream_priority(device->copy_lane().native()), StreamPriority::high);
  EXPECT_EQ(stream_priority(device->compute_lane().native()), StreamPriority::normal);
}

// The memory by which it empties the cache is allocated once for all times of a request, and not
// kept; without measurements there is none, and nobody wakes the card.
TEST(EmulatedDevice, TheTunerAllocatesOnceForManyTimes) {
  HostCounts counts;
  const auto runtime = make_host_runtime(&counts);
  const auto tuner = make_gpu_tuner(*runtime, "a card");
  int runs = 0;
  const auto work = [&](Stream) { ++runs; };
  EXPECT_GE(tuner->run(work), 0);
  EXPECT_EQ(counts.allocations, 0U);
  EXPECT_EQ(counts.kernels, 0U);
  {
    const std::shared_ptr<void> flushed = tuner->allocate_flushed();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tuner->time(work, 1, 2).size(), 2U);
    EXPECT_EQ(counts.allocations, 1U);
  }
  EXPECT_EQ(runs, 1 + 3 * 3);
  EXPECT_EQ(counts.device_bytes, 0U);
  expect_error(ErrorKind::internal, {"cache"}, [&] { tuner->time(work, 1, 2); });
}

}  // namespace
}  // namespace paceline::cuda
