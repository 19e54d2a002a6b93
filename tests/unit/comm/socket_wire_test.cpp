// Connections of our own between threads: Unix sockets where they meet through a store of this
// machine, and TCP as between machines.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <tuple>

#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/clock.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/unit/comm/worlds.h"

namespace paceline {
namespace {

// A rank's connections.
using Links = std::map<int, Descriptor>;

// As if each rank were on a machine of its own.
std::vector<Links> tcp_links(int size) {
  std::vector<Links> links(static_cast<std::size_t>(size));
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) {
      const Descriptor listener = listen_at(loopback(), 0);
      Descriptor there = connect_to_port(find_local_port(listener));
      tune(there);
      links[static_cast<std::size_t>(b)][a] = std::move(there);
      links[static_cast<std::size_t>(a)][b] = accept_one(listener);
    }
  }
  return links;
}

// Runs `body` as every rank on a thread of its own.
void on_ranks(int size, const Deadlines& deadlines,
              const std::function<void(SocketCommunicator&)>& body, bool over_tcp = false) {
  World world(size);
  std::vector<Links> links;
  if (over_tcp) links = tcp_links(size);
  on_threads(size, [&](int rank) {
    try {
      StoreClient store(world.where, rank, kPatience);
      const RankGroup group = RankGroup::numbered(rank, size);
      SocketCommunicator communicator(over_tcp ? std::move(links[static_cast<std::size_t>(rank)])
                                               : connect_mesh(store, group, deadlines),
                                      group, deadlines);
      body(communicator);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

class SocketWorld : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  bool over_tcp() const { return std::get<1>(GetParam()); }
};

TEST_P(SocketWorld, CollectivesAreRight) {
  const auto check = [this](SocketCommunicator& all) {
    EXPECT_EQ(all.description(), over_tcp() ? "TCP" : "Unix sockets");
    for (int root = 0; root < all.size(); ++root) {
      std::vector<int> data(300001, all.rank() == root ? 7 + root : -1);
      all.broadcast(data.data(), data.size() * sizeof(int), root);
      EXPECT_EQ(data, std::vector<int>(300001, 7 + root));
    }
    const std::vector<int> mine(50001, all.rank());
    std::vector<int> every(mine.size() * static_cast<std::size_t>(all.size()), -1);
    all.all_gather(mine.data(), mine.size() * sizeof(int), every.data());
    for (std::size_t i = 0; i < every.size(); ++i) {
      ASSERT_EQ(every[i], static_cast<int>(i / mine.size()));
    }
    InlineLane lane;
    std::vector<float> sum(700001, 1.0F + static_cast<float>(all.rank()));
    all.all_reduce(sum.data(), sum.size(), DType::f32, lane, "test");
    const auto n = static_cast<float>(all.size());
    EXPECT_EQ(sum, std::vector<float>(700001, n * (n + 1) / 2));
    all.barrier();
  };
  on_ranks(size(), {20, 60}, check, over_tcp());
}

TEST_P(SocketWorld, BarrierLetsNobodyPassEarly) {
  std::atomic<int> arrived{0};
  const auto check = [&](SocketCommunicator& all) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      all.barrier();
      EXPECT_GE(arrived, round * all.size());
      all.barrier();
    }
  };
  on_ranks(size(), {20, 60}, check, over_tcp());
}

INSTANTIATE_TEST_SUITE_P(Sizes, SocketWorld,
                         testing::Combine(testing::Values(2, 3, 5, 8), testing::Bool()));

TEST(SocketWire, ARankThatDoesNotComeIsNamed) {
  on_ranks(2, {1, 0.3}, [](SocketCommunicator& all) {
    if (all.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(900));
    expect_error(ErrorKind::stall, {"rank 0: barrier: rank 1 did not come within"},
                 [&] { all.barrier(); });
  });
}

TEST(SocketWire, ARankThatIsGoneIsNamed) {
  on_ranks(2, {20, 60}, [](SocketCommunicator& all) {
    if (all.rank() == 1) return;
    expect_error(ErrorKind::peer_lost, {"the connection to rank 1 broke"}, [&] {
      all.barrier();
      all.barrier();
    });
  });
}

TEST(SocketWire, AnAbortEndsTheWaitAndLaterOnes) {
  on_ranks(2, {20, 60}, [](SocketCommunicator& all) {
    if (all.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      all.abort("rank 7: out of memory");
    });
    for (int time = 0; time < 2; ++time) {
      expect_error(ErrorKind::peer_lost, {"rank 7: out of memory"}, [&] { all.barrier(); });
    }
    other.join();
  });
}

TEST(Mesh, RanksThatNeverConnectAreNamed) {
  World world(2);
  StoreClient store(world.where, 0, kPatience);
  expect_error(ErrorKind::stall, {"rank 0: control connections: no connection from rank 1 within"},
               [&] {
                 connect_mesh(store, RankGroup::numbered(0, 2), {1, 0.2});
               });
}

// Who connects may send at once; the other has not read the greeting yet.
TEST(Mesh, TheFirstMessageMayComeWithTheGreeting) {
  World world(2);
  std::thread one([&] {
    StoreClient store(world.where, 1, kPatience);
    const auto where = parse_mesh_address(store.get("mesh/0", kPatience));
    const Descriptor socket = connect_to_port(where->port);
    send_all(socket, where->secret + "00000001" + "!", Deadline(kPatience));
    store.get("done", kPatience);
  });
  StoreClient store(world.where, 0, kPatience);
  SocketCommunicator communicator(connect_mesh(store, RankGroup::numbered(0, 2), {20, 60}),
                                  RankGroup::numbered(0, 2), {20, 60});
  communicator.barrier();
  store.set("done", "");
  one.join();
}

// The local name leads nowhere, as on another machine.
TEST(Mesh, RanksOfAnotherMachineMeetByTcp) {
  World world(2);
  std::thread one([&] {
    StoreClient store(world.where, 1, kPatience);
    const std::string where = store.get("elsewhere/0", kPatience);
    store.set("mesh/0", where.substr(0, where.rfind(' ')) + " paceline-nowhere");
    const auto links = connect_mesh(store, RankGroup::numbered(1, 2), {20, 60});
    EXPECT_FALSE(is_local(links.at(0)));
  });
  StoreClient store(world.where, 0, kPatience);
  const auto links = connect_mesh(store, RankGroup::numbered(0, 2), {20, 60}, "elsewhere");
  EXPECT_FALSE(is_local(links.at(1)));
  one.join();
}

// Many of them: some silent, some with a wrong greeting, some that stop in the middle of it.
TEST(Mesh, StrangersAreDroppedAndHoldUpNobody) {
  World world(2);
  std::thread one([&] {
    StoreClient store(world.where, 1, kPatience);
    const auto where = parse_mesh_address(store.get("mesh/0", kPatience));
    std::vector<Descriptor> strangers;
    for (int i = 0; i < 300; ++i) {
      strangers.push_back(i % 2 == 0
                              ? connect_to_port(where->port)
                              : connect_to(local_endpoint(where->local_name), 0, Deadline(1)));
      const std::string says[] = {"", where->secret, std::string(40, 'x')};
      send_all(strangers.back(), says[i % 3], Deadline(kPatience));
    }
    EXPECT_EQ(connect_mesh(store, RankGroup::numbered(1, 2), {20, 60}).size(), 1U);
  });
  StoreClient store(world.where, 0, kPatience);
  const double start = now_seconds();
  EXPECT_EQ(connect_mesh(store, RankGroup::numbered(0, 2), {20, 60}).size(), 1U);
  EXPECT_LT(now_seconds() - start, 5);
  one.join();
}

// As in user namespaces, another user may have seen what only ranks should know.
TEST(Mesh, AnotherUserIsNoRankEvenWithTheSecret) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  World world(2);
  std::thread one([&] {
    StoreClient store(world.where, 1, kPatience);
    const auto where = parse_mesh_address(store.get("mesh/0", kPatience));
    syscall(SYS_setresuid, -1, 65534, -1);  // of this thread alone
    const Descriptor socket = connect_to(local_endpoint(where->local_name), 0, Deadline(1));
    send_all(socket, where->secret + "00000001", Deadline(kPatience));
    std::string bytes;
    EXPECT_TRUE(wait_for(socket, POLLIN, Deadline(kPatience)));
    EXPECT_EQ(receive(socket, bytes), Transfer::ended);
  });
  StoreClient store(world.where, 0, kPatience);
  expect_error(ErrorKind::stall, {"no connection from rank 1"}, [&] {
    connect_mesh(store, RankGroup::numbered(0, 2), {1, 1});
  });
  one.join();
}

TEST(Mesh, AddressesAreReadAsTheyAreWritten) {
  const std::string secret(32, 'a'), good = "10.0.0.3 29400 " + secret + " paceline-x";
  ASSERT_TRUE(parse_mesh_address(good));
  EXPECT_EQ(to_text(*parse_mesh_address(good)), good);
  for (const std::string& text : std::vector<std::string>{
           "", "x", "10.0.0.3 0 " + secret + " n", "10.0.0.3 99999 " + secret + " n",
           "10.0.0.3 -5 " + secret + " n", "$(x) 22 " + secret + " n", "10.0.0.3 22 short n",
           "10.0.0.3 22 " + secret + " " + std::string(101, 'n'), good + " more",
           std::string(900000, 'a')}) {
    EXPECT_FALSE(parse_mesh_address(text)) << text.substr(0, 80);
  }
}

TEST(Mesh, AStoreThatHoldsNoAddressIsNamed) {
  FalseStore store(2, [](const Message& message) {
    const bool is_get = message.type == MessageType::get;
    Message answer{is_get ? MessageType::got : MessageType::set_done, message.ticket};
    if (is_get) answer.value = "127.0.0.1 99999 x y";
    return encode(answer);
  });
  StoreClient client(store.where, 1, kPatience);
  expect_error(ErrorKind::peer_lost, {"rank 1", "no address of rank 0", "127.0.0.1 99999"}, [&] {
    connect_mesh(client, RankGroup::numbered(1, 2), {20, 60});
  });
}

}  // namespace
}  // namespace paceline
