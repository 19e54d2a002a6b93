// Sums in memory that processes of one machine share; here the ranks are threads with a mapping
// each.
#include "engine/comm/algorithms/shared_communicator.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/comm/rendezvous/client.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/comm/worlds.h"

namespace paceline {
namespace {

void on_sharing_ranks(int size, const std::function<void(SharedCommunicator&)>& body) {
  World world(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Deadlines deadlines{20, 60};
        StoreClient store(world.where, rank, kPatience);
        auto sockets = std::make_unique<SocketCommunicator>(
            connect_mesh(store, rank, size, deadlines, 1), rank, size, deadlines, 1);
        const auto shared = SharedCommunicator::make(sockets, deadlines, 1);
        ASSERT_TRUE(shared);
        EXPECT_FALSE(sockets);
        body(*shared);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int shared_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().starts_with("paceline-") ? 1 : 0;
  }
  return count;
}

class SharingWorld : public testing::TestWithParam<int> {};

TEST_P(SharingWorld, SumsInTheArenaAndOutsideOfIt) {
  on_sharing_ranks(GetParam(), [](SharedCommunicator& all) {
    const auto n = static_cast<float>(all.size());
    const float mine = 1.0F + static_cast<float>(all.rank()), sum = n * (n + 1) / 2;
    InlineLane lane;
    std::vector<float> outside(700001, mine);  // more than the scratch part
    all.all_reduce(outside.data(), outside.size(), DType::f32, lane, "outside");
    EXPECT_EQ(outside, std::vector<float>(700001, sum));
    const Memory arena = all.allocate(100000 * sizeof(float));
    auto* inside = reinterpret_cast<float*>(arena.data());
    for (const std::size_t begin : {0, 4096, 99000}) {
      std::fill(inside, inside + 100000, mine);
      all.all_reduce(inside + begin, 1000, DType::f32, lane, "inside");
      for (std::size_t i = 0; i < 100000; ++i) {
        ASSERT_EQ(inside[i], i >= begin && i < begin + 1000 ? sum : mine) << i;
      }
      all.barrier();
    }
    std::vector<int> ranks(static_cast<std::size_t>(all.size()));
    const int rank = all.rank();
    all.all_gather(&rank, sizeof rank, ranks.data());
    for (int i = 0; i < all.size(); ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharingWorld, testing::Values(2, 3, 5));

TEST(SharedCommunicator, LeavesNoFile) {
  const int before = shared_files();
  on_sharing_ranks(2, [&](SharedCommunicator& all) {
    all.barrier();
    EXPECT_LE(shared_files(), before);
  });
}

// A peer that is gone while the memory is made leaves no file behind either.
TEST(SharedCommunicator, LeavesNoFileWhereAPeerIsLost) {
  const Deadlines deadlines{20, 60};
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  std::map<int, Descriptor> links;
  links[1] = Descriptor(ends[0]);
  SocketCommunicator ranks(std::move(links), 0, 2, deadlines, 1);
  const int before = shared_files();
  close(ends[1]);
  EXPECT_THROW(SharedParts::make(ranks, 4096), Error);
  EXPECT_LE(shared_files(), before);
}

TEST(SharedCommunicator, AnAbortEndsTheSumThatOthersDoNotJoin) {
  on_sharing_ranks(2, [](SharedCommunicator& all) {
    if (all.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      all.abort("rank 1: out of memory");
    });
    InlineLane lane;
    float value = 1;
    expect_error(ErrorKind::peer_lost, {"sum"},
                 [&] { all.all_reduce(&value, 1, DType::f32, lane, "sum"); });
    other.join();
  });
}

// Ranks of two machines keep their sockets.
TEST(SharedCommunicator, IsNotForRanksOfSeveralMachines) {
  const Descriptor listener = listen_at(loopback(), 0);
  std::vector<Descriptor> ends;
  ends.push_back(connect_to_port(local_port_of(listener)));
  ends.push_back(accept_either(listener, listener, Deadline(kPatience)));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Deadlines deadlines{20, 60};
      std::map<int, Descriptor> links;
      links[1 - rank] = std::move(ends[static_cast<std::size_t>(rank)]);
      auto sockets = std::make_unique<SocketCommunicator>(std::move(links), rank, 2, deadlines, 1);
      EXPECT_FALSE(SharedCommunicator::make(sockets, deadlines, 1));
      ASSERT_TRUE(sockets);
      sockets->barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace paceline
