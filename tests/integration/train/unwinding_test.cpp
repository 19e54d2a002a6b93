// A replica that fails while a sum of its own waits for the others: the sum is ended by the abort,
// and ends before the memory goes that it works on.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "engine/core/clock.h"
#include "engine/device/device.h"
#include "engine/train/session.h"
#include "tests/integration/train/training.h"
#include "tests/support/communicators.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

// One of two ranks, the other of which says the same in small collectives and takes part in one sum
// only: the second waits for it, the third fails at once.
class HalfWorld final : public IdleCommunicator {
 public:
  HalfWorld() : IdleCommunicator(2) {}
  Memory allocate(std::size_t bytes) override {
    arena_ = host_memory(bytes);
    return {arena_.data(), bytes, MemoryKind::host, [this](void*) { freed_ = true; }};
  }

  void all_reduce(void*, std::size_t, DType, Lane& lane, std::string_view) override {
    if (++sums_ == 1) return;
    if (sums_ == 3) throw Error(ErrorKind::internal, "the third sum fails");
    lane.submit([this] {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::seconds(60), [this] { return aborted_; });
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      freed_before_end_ = freed_.load();
      ended_ = true;
    });
  }

  void abort(std::string_view) noexcept override {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

  bool ended() const { return ended_; }
  bool freed() const { return freed_; }
  bool freed_before_end() const { return freed_before_end_; }

 private:
  Memory arena_;
  int sums_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  std::atomic<bool> freed_ = false, ended_ = false, freed_before_end_ = false;
};

// A session of two replicas with several buckets; outlives what it sets up.
struct Small {
  DatasetPair data = training::mnist(256, 16);
  Network network{"small", {28, 28, 1}, 10};

  Small() { network.flatten().dense(16).relu().dense(10); }
  SessionSetup setup() const {
    SessionSetup setup;
    setup.config.replicas = 2;
    setup.config.bucket_mb = setup.config.last_bucket_mb = 0.001;
    setup.config.evaluate = Evaluate::none;
    setup.network = &network;
    setup.data = &data;
    return setup;
  }
};

TEST(Unwinding, ASumThatWaitsEndsBeforeItsMemoryGoes) {
  const Small small;
  SessionSetup setup = small.setup();
  setup.make_device = [](int) {
    DeviceOptions options;
    options.comm_threads = 1;
    return device_table().front().make(options);
  };
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(std::make_unique<HalfWorld>());
  const auto& world = static_cast<const HalfWorld&>(*communicators[0]);
  const double began = now_seconds();
  expect_error(ErrorKind::internal, {"the third sum fails"},
               [&] { run_session(setup, communicators); });
  EXPECT_LT(now_seconds() - began, 50) << "nothing ended the sum that waited";
  EXPECT_TRUE(world.ended());
  EXPECT_TRUE(world.freed());
  EXPECT_FALSE(world.freed_before_end());
}

// Memory that the host cannot see, copied slowly; what is freed is not copied any more.
class SlowlyCopied final : public Device {
 public:
  struct Seen {
    std::atomic<bool> freed = false, copied_after = false;
    std::atomic<int> copies = 0;
  };
  SlowlyCopied(std::unique_ptr<Device> inner, Seen& seen) : inner_(std::move(inner)), seen_(seen) {}

  std::string_view name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  DType real() const override { return inner_->real(); }
  Support supports(const Operation& operation) const override {
    return inner_->supports(operation);
  }
  MemoryKind memory_kind() const override { return MemoryKind::device; }
  Memory allocate(std::size_t bytes) override {
    memory_ = host_memory(bytes);
    return {memory_.data(), bytes, MemoryKind::device, [this](void*) { seen_.freed = true; }};
  }
  void copy_to_host(void* host, const void* from, std::size_t bytes) override {
    std::memcpy(host, from, bytes);
    note_copy();
  }
  void copy_to_device(void* to, const void* host, std::size_t bytes) override {
    std::memcpy(to, host, bytes);
    note_copy();
  }
  ProbeFacts probe() override { return inner_->probe(); }
  Lane& compute_lane() override { return inner_->compute_lane(); }
  Lane& copy_lane() override { return inner_->copy_lane(); }
  Lane& comm_lane() override { return inner_->comm_lane(); }
  std::unique_ptr<Program> compile(const Plan& plan, std::byte* gradients) override {
    return inner_->compile(plan, gradients);
  }

 private:
  void note_copy() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++seen_.copies;
    if (seen_.freed) seen_.copied_after = true;
  }

  std::unique_ptr<Device> inner_;
  Seen& seen_;
  Memory memory_;
};

// Sums once, before the first step; then the lane fails at once.
class FailingWorld final : public IdleCommunicator {
 public:
  FailingWorld() : IdleCommunicator(2) {}
  void all_reduce(void*, std::size_t, DType, Lane& lane, std::string_view) override {
    if (++sums_ == 2) lane.submit([] { throw Error(ErrorKind::internal, "the sum fails"); });
  }

 private:
  int sums_ = 0;
};

TEST(Unwinding, CopiesAroundASumThatFailsEndBeforeTheirMemoryGoes) {
  SlowlyCopied::Seen seen;
  const Small small;
  SessionSetup setup = small.setup();
  setup.make_device = [&seen](int) {
    DeviceOptions options;
    options.comm_threads = 1;
    return std::make_unique<SlowlyCopied>(device_table().front().make(options), seen);
  };
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(std::make_unique<FailingWorld>());
  expect_error(ErrorKind::internal, {"the sum fails"}, [&] { run_session(setup, communicators); });
  EXPECT_GT(seen.copies, 2);
  EXPECT_TRUE(seen.freed);
  EXPECT_FALSE(seen.copied_after);
}

}  // namespace
}  // namespace paceline
