// Sums of ranks on nodes; here the ranks are threads with a mapping each.
#include "engine/comm/algorithms/node_communicator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/transport/mesh.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/unit/comm/worlds.h"

namespace paceline {
namespace {

// Runs `body` as each of `size` ranks, `per_node` consecutive ones to a node.
void on_nodes(int size, int per_node, const std::function<void(NodeCommunicator&)>& body) {
  World world(size);
  on_threads(size, [&](int rank) {
    try {
      const Deadlines deadlines{20, 60};
      StoreClient store(world.where, rank, kPatience);
      const auto connect = [&](const RankGroup& group, const std::string& name) {
        return std::make_unique<SocketCommunicator>(connect_mesh(store, group, deadlines, name),
                                                    group, deadlines);
      };
      const RankGroup all = RankGroup::numbered(rank, size);
      std::vector<int> node, leaders;
      for (int other = 0; other < size; ++other) {
        if (other / per_node == rank / per_node) node.push_back(other);
        if (other % per_node == 0) leaders.push_back(other);
      }
      NodeSetup setup;
      setup.all = connect(all, "all");
      if (leaders.size() > 1)
        setup.node = connect(subgroup(all, node), fmt::format("node {}", node[0]));
      setup.names = node;
      setup.deadlines = deadlines;
      const auto ranks = NodeCommunicator::make(setup);
      ASSERT_TRUE(ranks);
      EXPECT_FALSE(setup.all);
      const RankGroup leading = subgroup(all, leaders);
      if (leaders.size() > 1) {
        ranks->connect_leaders(leading.rank < 0 ? nullptr : connect(leading, "leaders"));
      }
      body(*ranks);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

int shared_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().starts_with("paceline-") ? 1 : 0;
  }
  return count;
}

struct Nodes {
  int ranks, per_node;
};

class NodeSums : public testing::TestWithParam<Nodes> {};

TEST_P(NodeSums, AreRightInTheArenaAndOutside) {
  on_nodes(GetParam().ranks, GetParam().per_node, [](NodeCommunicator& all) {
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

// One node, whole nodes, and a last node with fewer ranks.
INSTANTIATE_TEST_SUITE_P(Sizes, NodeSums,
                         testing::Values(Nodes{2, 2}, Nodes{5, 5}, Nodes{4, 2}, Nodes{5, 2}));

TEST(NodeCommunicator, LeavesNoFile) {
  const int before = shared_files();
  on_nodes(2, 2, [&](NodeCommunicator& all) {
    all.barrier();
    EXPECT_LE(shared_files(), before);
  });
}

// A peer that is gone while the memory is made leaves no file behind either.
TEST(NodeCommunicator, LeavesNoFileWhereAPeerIsLost) {
  const Deadlines deadlines{20, 60};
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  std::map<int, Descriptor> links;
  links[1] = Descriptor(ends[0]);
  SocketCommunicator ranks(std::move(links), RankGroup::numbered(0, 2), deadlines);
  const int before = shared_files();
  close(ends[1]);
  EXPECT_THROW(SharedParts::make(ranks, 4096), Error);
  EXPECT_LE(shared_files(), before);
}

TEST(NodeCommunicator, AbortEndsASumThatOthersDoNotJoin) {
  on_nodes(2, 2, [](NodeCommunicator& all) {
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

TEST(NodeGroups, RanksOfThisProcessShareANode) {
  on_nodes(3, 3, [](NodeCommunicator& all) {
    const NodeGroups nodes = find_nodes(all);
    EXPECT_EQ(nodes.mine, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(nodes.leaders, (std::vector<int>{0}));
  });
}

}  // namespace
}  // namespace paceline
