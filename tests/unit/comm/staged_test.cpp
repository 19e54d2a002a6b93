// Around which backends it works is in tests/conformance/comm; here, what it does when something
// goes wrong, and where it stages.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/wrappers/staged/staged_communicator.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

// Two threads that sum through common memory, of which the base may own some.
class Base final : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  Memory allocate(std::size_t bytes) override {
    return owns_memory ? host_memory(bytes) : Memory();
  }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    largest = std::max(largest.load(), count * size_of(type));
    reduced_at = data;
    ThreadCommunicator::all_reduce(data, count, type, lane, label);
  }
  bool owns_memory = false;
  std::atomic<std::size_t> largest{0};
  std::atomic<void*> reduced_at{nullptr};
};

struct StagedWorld {
  explicit StagedWorld(int ranks) {
    Membership membership;
    membership.replicas_here = ranks;
    membership.deadlines = {20, 60};
    bases = connect_threads<Base>(membership);
  }
  Base& base(std::size_t rank) { return static_cast<Base&>(*bases[rank]); }
  std::vector<std::unique_ptr<Communicator>> bases;
};

DeviceCopies plain_copies() {
  return {[](void* host, const void* device, std::size_t n) { std::memcpy(host, device, n); },
          [](void* device, const void* host, std::size_t n) { std::memcpy(device, host, n); },
          [](std::size_t bytes) { return host_memory(bytes); }};
}

template <typename Body>
void on_both(StagedWorld& world, const Body& body) {
  std::thread other([&] { body(world.base(1)); });
  body(world.base(0));
  other.join();
}

TEST(Staged, SumsInPiecesMoreThanItStagesAtOnce) {
  StagedWorld world(2);
  on_both(world, [](Base& base) {
    StagedCommunicator all(base, plain_copies());
    ThreadLane lane;
    std::vector<float> data((std::size_t{9} << 20) / sizeof(float), 1.5F);  // three buffers of 4 MB
    all.all_reduce(data.data(), data.size(), DType::f32, lane, "test");
    lane.drain();
    EXPECT_EQ(data, std::vector<float>(data.size(), 3.0F));
    EXPECT_EQ(base.largest, StagedCommunicator::kPieceBytes);
  });
}

TEST(Staged, TheBackendsOwnMemoryIsWhereItStages) {
  StagedWorld world(2);
  on_both(world, [](Base& base) {
    base.owns_memory = true;
    void* pinned = nullptr;
    bool unpinned = false;
    {
      DeviceCopies copies = plain_copies();
      copies.pinned = [](std::size_t) -> Memory { throw std::runtime_error("not asked for"); };
      copies.pin = [&](void* data, std::size_t bytes) {
        pinned = data;
        return Memory(data, bytes, MemoryKind::pinned, [&](void*) { unpinned = true; });
      };
      StagedCommunicator all(base, copies);
      EXPECT_EQ(all.allocate(100000).bytes(), 0U);
      InlineLane lane;
      std::vector<double> data(1000, 2.0);
      all.all_reduce(data.data(), data.size(), DType::f64, lane, "test");
      EXPECT_EQ(data.back(), 4.0);
      EXPECT_EQ(base.reduced_at, pinned);
    }
    EXPECT_TRUE(unpinned);
  });
}

TEST(Staged, ACopyThatFailsIsThrownWhereTheLaneIsDrained) {
  StagedWorld world(2);
  DeviceCopies copies = plain_copies();
  copies.to_host = [](void*, const void*, std::size_t) {
    throw Error(ErrorKind::internal, "the GPU fell off the bus");
  };
  StagedCommunicator all(world.base(0), copies);
  ThreadLane lane;
  std::vector<float> data(1000, 1.0F);
  all.all_reduce(data.data(), data.size(), DType::f32, lane, "test");
  expect_error(ErrorKind::internal, {"fell off the bus"}, [&] { lane.drain(); });
  EXPECT_EQ(data, std::vector<float>(1000, 1.0F));
}

// The copy of a later piece does not wait for the sum of an earlier one.
TEST(Staged, CopiesOverlapSums) {
  StagedWorld world(2);
  on_both(world, [](Base& base) {
    std::atomic<std::size_t> copied{0};
    DeviceCopies copies = plain_copies();
    copies.to_host = [&](void* host, const void* device, std::size_t n) {
      std::memcpy(host, device, n);
      copied += n;
    };
    std::atomic<bool> seen_all{false};
    copies.to_device = [&](void* device, const void* host, std::size_t n) {
      // The first piece comes back only once the last one has been copied out.
      while (copied < StagedCommunicator::kPieceBytes * 2) std::this_thread::yield();
      seen_all = true;
      std::memcpy(device, host, n);
    };
    StagedCommunicator all(base, copies);
    all.allocate(StagedCommunicator::kPieceBytes * 2);
    ThreadLane lane;
    std::vector<float> data(StagedCommunicator::kPieceBytes * 2 / sizeof(float), 1.0F);
    all.all_reduce(data.data(), data.size(), DType::f32, lane, "test");
    lane.drain();
    EXPECT_TRUE(seen_all);
    EXPECT_EQ(data.back(), 2.0F);
  });
}

TEST(Staged, AloneNothingIsCopied) {
  StagedWorld world(1);
  DeviceCopies copies;  // none could be called
  StagedCommunicator all(world.base(0), copies);
  EXPECT_EQ(all.allocate(100).bytes(), 0U);
  InlineLane lane;
  all.all_reduce(nullptr, 10, DType::f32, lane, "test");
  EXPECT_TRUE(all.reduces(MemoryKind::device));
}

}  // namespace
}  // namespace paceline
