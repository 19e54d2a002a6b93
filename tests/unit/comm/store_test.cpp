// The bootstrap store: server and clients in one process, threads as ranks.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <memory>

#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/core/clock.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"
#include "tests/unit/comm/worlds.h"

namespace paceline {
namespace {

TEST(Store, RanksFindEachOther) {
  constexpr int kRanks = 4;
  World world(kRanks);
  std::vector<std::string> seen(kRanks);
  on_threads(kRanks, [&](int rank) {
    StoreClient client(world.where, rank, kPatience);
    client.set("address/" + std::to_string(rank), "node" + std::to_string(rank));
    for (int other = 0; other < kRanks; ++other) {
      seen[static_cast<std::size_t>(rank)] +=
          client.get("address/" + std::to_string(other), kPatience) + " ";
    }
  });
  for (const std::string& all : seen) EXPECT_EQ(all, "node0 node1 node2 node3 ");
}

TEST(Store, GetWaitsForTheSet) {
  World world(2);
  StoreClient waiting(world.where, 0, kPatience), late(world.where, 1, kPatience);
  std::thread thread([&] {
    poll(nullptr, 0, 100);
    late.set("key", "value");
  });
  EXPECT_EQ(waiting.get("key", kPatience), "value");
  thread.join();
}

TEST(Store, GetTimesOutAndTheNextOneIsNotAnsweredWithItsValue) {
  World world(2);
  StoreClient client(world.where, 0, kPatience), other(world.where, 1, kPatience);
  expect_error(ErrorKind::stall, {"rank 1's address did not come within 50 ms"},
               [&] { client.get("address/1", 0.05, "rank 1's address"); });
  expect_error(ErrorKind::stall, {"\"address/1\" did not come"},
               [&] { client.get("address/1", 0.05); });
  other.set("address/1", "too late");
  other.set("other", "asked for");
  EXPECT_EQ(client.get("other", kPatience), "asked for");
}

TEST(Store, LimitsOfSize) {
  World world(1);
  StoreClient client(world.where, 0, kPatience);
  const std::string largest(kLargestValue, 'x'), key(kLargestKey, 'k');
  client.set(key, largest);
  EXPECT_EQ(client.get(key, kPatience), largest);
  expect_error(ErrorKind::internal, {"value of 1048577 bytes"},
               [&] { client.set("key", largest + "x"); });
  expect_error(ErrorKind::internal, {"key of 1025 bytes"}, [&] { client.set(key + "k", ""); });
}

TEST(Store, LocalAddressIsOnTheRouteToTheServer) {
  World world(1);
  EXPECT_EQ(StoreClient(world.where, 0, kPatience).local_address(), "127.0.0.1");
}

TEST(Store, SpeaksIpv6) {
  BootstrapAddress where = any_port("::1");
  if (const auto probe = listen_at(resolve("::1").front(), 0); !probe) GTEST_SKIP() << "no IPv6";
  StoreServer server(where, 1);
  EXPECT_TRUE(server.address().starts_with("[::1]:")) << server.address();
  where.ports = {parse_port(server)};
  StoreClient client(where, 0, kPatience);
  client.set("key", "value");
  EXPECT_EQ(client.get("key", kPatience), "value");
  EXPECT_EQ(client.local_address(), "::1");
}

TEST(Store, ATakenPortIsPassedOver) {
  World taken(1);
  BootstrapAddress where = any_port();
  where.ports = {parse_port(taken.server), 0};
  StoreServer server(where, 1);
  EXPECT_NE(parse_port(server), parse_port(taken.server));
  where.ports.pop_back();
  expect_error(ErrorKind::usage, {"127.0.0.1", "PACELINE_PORTS"}, [&] { StoreServer(where, 1); });
}

TEST(Store, BindsToTheGivenAddressOnly) {
  expect_error(ErrorKind::usage, {"every interface"}, [] { StoreServer(any_port("0.0.0.0"), 1); });
  expect_error(ErrorKind::usage, {"every interface"}, [] { StoreServer(any_port("::"), 1); });
  // 192.0.2.0/24 is for documentation: no machine has it.
  expect_error(ErrorKind::usage, {"192.0.2.1", "not a local address"},
               [] { StoreServer(any_port("192.0.2.1"), 1); });
  BootstrapAddress across = any_port();
  across.across_nodes = true;
  expect_error(ErrorKind::usage, {"loopback", "PACELINE_STORE"}, [&] { StoreServer(across, 1); });
}

// Answers one connection after another as something that is not Paceline.
class Stranger {
 public:
  explicit Stranger(std::string says) : socket_(listen_at(loopback(), 0)) {
    thread_ = std::thread([this, says = std::move(says)] {
      while (!done_) {
        Descriptor peer(accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) {
          poll(nullptr, 0, 5);
          continue;
        }
        ++met_;
        send_all(peer, says, Deadline(1));
        std::string bytes;
        while (!done_ && receive(peer, bytes) == Transfer::some) continue;
      }
    });
  }
  ~Stranger() {
    done_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return find_local_port(socket_); }
  int met() const { return met_; }

 private:
  Descriptor socket_;
  std::atomic<bool> done_{false};
  std::atomic<int> met_{0};
  std::thread thread_;
};

TEST(Store, AStrangersServiceOnAPortIsPassedOver) {
  Stranger stranger("SSH-2.0-OpenSSH_9.2\r\n");
  World world(1);
  BootstrapAddress where = world.where;
  where.ports = {stranger.port(), parse_port(world.server)};
  StoreClient client(where, 0, kPatience);
  EXPECT_EQ(client.server(), world.server.address());
  EXPECT_EQ(stranger.met(), 1);
}

TEST(Store, AnotherRunsStoreOnAPortIsPassedOver) {
  BootstrapAddress theirs = any_port();
  theirs.token = "another run's";
  StoreServer other(theirs, 1);
  World world(1);
  BootstrapAddress where = world.where;
  where.ports = {parse_port(other), parse_port(world.server)};
  EXPECT_EQ(StoreClient(where, 0, kPatience).server(), world.server.address());
}

TEST(Store, AWrongTokenIsReported) {
  World world(2);
  BootstrapAddress wrong = world.where;
  wrong.token = "wrong token!";
  expect_error(ErrorKind::usage, {"wrong token", "PACELINE_TOKEN", "(user "},
               [&] { StoreClient(wrong, 0, kPatience); });
}

Message greeting(MessageType type, int rank) {
  Message hello{type};
  hello.number = static_cast<std::uint64_t>(rank);
  hello.value = std::string(kTokenBytes, '0') + "n" + std::to_string(rank);
  return hello;
}

// A set that follows a wrong proof, or none, without waiting for the answer changes nothing.
TEST(Store, WhoDoesNotProveThatItKnowsTheTokenIsDropped) {
  World world(2);
  Message proof{MessageType::proof};
  const Message set{MessageType::set, 1, 0, "key", "theirs"};
  for (const std::string& value : {std::string(), std::string(32, 'x'), std::string(1000, 'x')}) {
    proof.value = value;
    const Descriptor socket = connect_to_port(parse_port(world.server));
    send_all(socket, encode(greeting(MessageType::hello_store, 0)) + encode(proof) + encode(set),
             Deadline(kPatience));
    int answers = 0;
    receive_messages(socket, [&](const Message& answer) {
      ++answers;
      EXPECT_EQ(answer.type, MessageType::challenge);
    });
    EXPECT_LE(answers, 1);
  }
  StoreClient client(world.where, 1, kPatience);
  expect_error(ErrorKind::stall, {"key"}, [&] { client.get("key", 0.05); });
}

// What a stranger saw of one greeting does not serve for the next one, nor at another address, nor
// for the other side; and the token is in none of it.
TEST(Store, ProofsAreOfOneGreetingOneAddressAndOneSide) {
  const Message hello = greeting(MessageType::hello_control, 1);
  const std::string token = "a secret token", at = "10.0.0.3:29400", nonce(32, '1');
  const std::string right = make_proof(token, ProofSide::rank, at, hello, nonce);
  EXPECT_EQ(right.size(), 32U);
  EXPECT_EQ(right, make_proof(token, ProofSide::rank, at, hello, nonce));
  EXPECT_NE(right, make_proof(token, ProofSide::store, at, hello, nonce));
  EXPECT_NE(right, make_proof("another token", ProofSide::rank, at, hello, nonce));
  EXPECT_NE(right, make_proof(token, ProofSide::rank, "10.0.0.3:29401", hello, nonce));
  EXPECT_NE(right, make_proof(token, ProofSide::rank, at, hello, std::string(32, '2')));
  EXPECT_NE(right,
            make_proof(token, ProofSide::rank, at, greeting(MessageType::hello_control, 0), nonce));
  EXPECT_NE(right,
            make_proof(token, ProofSide::rank, at, greeting(MessageType::hello_store, 1), nonce));
  EXPECT_EQ(make_proof(token, ProofSide::rank, "[fe80::1%eth0]:1", hello, nonce),
            make_proof(token, ProofSide::rank, "[fe80::1%ib1]:1", hello, nonce));
  EXPECT_FALSE(is_same_proof(right, right.substr(1)));
  EXPECT_TRUE(is_same_proof(right, std::string(right)));
}

// Listens before the store and passes on all that is said, both ways.
TEST(Store, AStrangerBetweenRankAndStoreIsFoundOut) {
  World world(1);
  const Descriptor listener = listen_at(loopback(), 0);
  std::thread relay([&] {
    const Descriptor rank = accept_one(listener);
    const Descriptor store = connect_to_port(parse_port(world.server));
    std::string bytes;
    wait_for(rank, POLLIN, Deadline(kPatience));
    receive(rank, bytes);
    send_all(store, bytes, Deadline(kPatience));
    bytes.clear();
    wait_for(store, POLLIN, Deadline(kPatience));
    receive(store, bytes);
    send_all(rank, bytes, Deadline(kPatience));
    bytes.clear();
    wait_for(rank, POLLIN, Deadline(kPatience));
    EXPECT_EQ(receive(rank, bytes), Transfer::ended);
  });
  BootstrapAddress where = world.where;
  where.ports = {find_local_port(listener)};
  expect_error(ErrorKind::usage, {"wrong token"}, [&] { StoreClient(where, 0, kPatience); });
  relay.join();
}

// Each rank waits for all of them together.
TEST(Store, SilentStrangersOnManyPortsDelayByAMoment) {
  std::vector<Descriptor> strangers;
  BootstrapAddress where = any_port();
  where.ports.clear();
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(listen_at(loopback(), 0));
    where.ports.push_back(find_local_port(strangers.back()));
  }
  World world(1);
  where.ports.push_back(parse_port(world.server));
  const double start = now_seconds();
  EXPECT_EQ(StoreClient(where, 0, kPatience).server(), world.server.address());
  EXPECT_LT(now_seconds() - start, 5);
  where.ports.pop_back();
  where.ports.resize(1);
  expect_error(ErrorKind::stall,
               {"127.0.0.1:" + std::to_string(where.ports[0]) + " (user ", "not this run's"},
               [&] { StoreClient(where, 0, 4); });
}

// A token that no environment gives.
TEST(Store, RanksOfOneUserGetTheTokenByAFile) {
  const Scratch scratch;
  BootstrapAddress where = any_port();
  where.token.clear();
  where.token_file = scratch / "status" / "paceline-x-";
  where.ranks = 2;
  std::filesystem::create_directory(scratch / "status");
  const auto files = [&] {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(scratch / "status")) {
      all.push_back(entry.path());
    }
    return all;
  };
  // Left by a run that was killed; a file that others can read; a name without its end.
  const std::string stale = "00000000000000000000000000000000 1\n";
  for (const auto& [name, mode] :
       {std::pair("paceline-x-killed", 0600), {"paceline-x-open", 0644}, {"paceline-x-", 0600}}) {
    std::ofstream(scratch / "status" / name) << (mode == 0600 ? stale : "");
    chmod((scratch / "status" / name).c_str(), static_cast<mode_t>(mode));
  }
  std::thread one([&] {
    StoreClient client(where, 1, kPatience);
    const LivenessConnection control(where, 1, kPatience, [](int, const std::string&) {});
    client.get("done", kPatience);
  });
  poll(nullptr, 0, 100);
  const StoreServer server(where, 2);
  for (const auto& file : files()) {
    if (file.filename() == "paceline-x-open") continue;
    EXPECT_EQ(std::filesystem::status(file).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  EXPECT_EQ(files().size(), 2U);
  StoreClient client(where, 0, kPatience);
  const LivenessConnection control(where, 0, kPatience, [](int, const std::string&) {});
  EXPECT_EQ(client.server(), server.address());
  while (files().size() != 1) poll(nullptr, 0, 5);  // all have joined
  client.set("done", "");
  one.join();
}

TEST(Store, WithoutRank0NobodyGetsAToken) {
  const Scratch scratch;
  BootstrapAddress where = any_port();
  where.token_file = scratch / "paceline-x-";
  expect_error(ErrorKind::stall, {"rank 0 left no token", "paceline-x-", "set PACELINE_TOKEN"},
               [&] { StoreClient(where, 1, 0.2); });
  where.token_file = scratch / "file" / "paceline-x-";
  std::ofstream(scratch / "file") << "";
  expect_error(ErrorKind::input, {"token cannot be written", "PACELINE_STATUS_DIR"},
               [&] { StoreServer(where, 2); });
}

TEST(Store, AWorldOfAnotherSizeIsRefused) {
  World world(2);
  world.where.ranks = 3;
  expect_error(ErrorKind::mismatch, {"its world has 2 ranks, this one 3"},
               [&] { StoreClient(world.where, 0, kPatience); });
}

TEST(Store, AFloodOfAnswersEndsAtTheDeadline) {
  FalseStore store(1, [](const Message&) {
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += encode(Message{MessageType::got, 77});
    return bytes;
  });
  StoreClient client(store.where, 0, kPatience);
  expect_error(ErrorKind::stall, {"\"key\" did not come"}, [&] { client.get("key", 0.1); });
}

TEST(Store, AFalseAnswerIsNoAnswer) {
  FalseStore store(1, [](const Message&) { return encode(Message{MessageType::hello_store}); });
  StoreClient client(store.where, 0, kPatience);
  expect_error(ErrorKind::peer_lost, {"an answer that a store of this run does not give"},
               [&] { client.get("key", kPatience); });
}

TEST(Store, RanksOutsideTheWorldAreRefused) {
  World world(2);
  expect_error(ErrorKind::mismatch, {"rank 2", "world of 2 ranks"},
               [&] { StoreClient(world.where, 2, kPatience); });
}

TEST(Store, NobodyThere) {
  const std::uint16_t port = parse_port(World(1).server);
  BootstrapAddress where = any_port();
  where.ports = {port};
  expect_error(ErrorKind::stall, {"rank 0", "within 200 ms", std::to_string(port)},
               [&] { StoreClient(where, 0, 0.2); });
}

TEST(Store, AClientThatComesFirstWaitsForTheServer) {
  auto world = std::make_unique<World>(1);
  const BootstrapAddress where = world->where;
  world.reset();
  std::unique_ptr<StoreServer> server;
  std::thread thread([&] {
    poll(nullptr, 0, 200);
    server = std::make_unique<StoreServer>(where, 1);
  });
  StoreClient client(where, 0, kPatience);
  client.set("key", "value");
  thread.join();
}

TEST(Store, RubbishDoesNotDisturbOthers) {
  World world(2);
  StoreClient client(world.where, 0, kPatience);
  client.set("key", "value");
  std::vector<Descriptor> sockets;
  const std::string hello = encode(greeting(MessageType::hello_store, 1));
  const std::string rubbish[] = {"GET / HTTP/1.1\r\n\r\n",
                                 std::string(100000, '\0'),
                                 hello + hello,
                                 hello + "x",
                                 encode(Message{MessageType::set, 1, 0, "key", "theirs"}),
                                 hello + encode(Message{MessageType::goodbye}),
                                 hello.substr(0, 20)};
  for (const std::string& bytes : rubbish) {
    sockets.push_back(connect_to_port(parse_port(world.server)));
    send_all(sockets.back(), bytes, Deadline(kPatience));
  }
  // All but the last, which may still become a greeting, are dropped.
  for (std::size_t i = 0; i + 1 < sockets.size(); ++i) {
    std::string bytes;
    Transfer result = Transfer::some;
    while (result != Transfer::ended && wait_for(sockets[i], POLLIN, Deadline(kPatience))) {
      result = receive(sockets[i], bytes);
    }
    EXPECT_EQ(result, Transfer::ended) << i;
  }
  EXPECT_EQ(client.get("key", kPatience), "value");
}

TEST(Store, SilentStrangersAreDroppedAndHoldNoSlotForLong) {
  World world(1);
  std::vector<Descriptor> silent;
  for (int i = 0; i < 900; ++i) silent.push_back(connect_to_port(parse_port(world.server)));
  const double start = now_seconds();
  StoreClient client(world.where, 0, kPatience);
  EXPECT_LT(now_seconds() - start, 5);
  client.set("key", "value");
  EXPECT_TRUE(wait_for(silent.front(), POLLIN, Deadline(kPatience)));
}

TEST(Store, AVanishedServerIsAPeerLost) {
  auto world = std::make_unique<World>(1);
  StoreClient client(world->where, 0, kPatience);
  world.reset();
  expect_error(ErrorKind::peer_lost, {"store is gone"}, [&] { client.get("key", kPatience); });
}

TEST(Store, AWaitCanBeInterrupted) {
  World world(1);
  StoreClient client(world.where, 0, kPatience);
  std::thread thread([&] {
    poll(nullptr, 0, 100);
    client.interrupt("rank 2 on n02 is gone");
  });
  expect_error(ErrorKind::peer_lost, {"rank 2 on n02 is gone"},
               [&] { client.get("key", kPatience); });
  thread.join();
}

std::vector<StoreState::Answer> reported(StoreState& state, int connection,
                                         const Message& message) {
  std::vector<StoreState::Answer> answers;
  state.receive(connection, message, 0, answers);
  return answers;
}

// The last answer to a rank that greets and proves that it knows the token.
MessageType join(StoreState& state, int connection, int rank) {
  const Message hello = greeting(MessageType::hello_control, rank);
  const std::string nonce = reported(state, connection, hello).front().message.key;
  Message proof{MessageType::proof};
  proof.value = make_proof("token", ProofSide::rank, "here:1", hello, nonce);
  return reported(state, connection, proof).front().message.type;
}

// A rank that waited too long for a busy store's welcome comes again; the store reads both.
TEST(StoreState, AnAttemptThatWasGivenUpIsNoRankThatDied) {
  StoreState state("token", "here:1", 2);
  join(state, 1, 0);
  join(state, 2, 1);
  EXPECT_EQ(join(state, 3, 1), MessageType::welcome);
  reported(state, 3, Message{MessageType::progress});
  std::vector<StoreState::Answer> answers;
  state.end(2, answers);
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(join(state, 4, 1), MessageType::refused);
  state.end(3, answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].connection, 1);
  EXPECT_EQ(answers[0].message.value, "rank 1 on n1 is gone");
}

// Where all wait, all ask: the ranks are asked once, and the answer is as short as it can be.
TEST(StoreState, QuestionsOfManyRanksAreAnsweredTogether) {
  constexpr int kRanks = 100;
  StoreState state("token", "here:1", kRanks);
  for (int rank = 0; rank < kRanks; ++rank) join(state, rank, rank);
  std::vector<StoreState::Answer> answers;
  for (int rank = 0; rank < kRanks; ++rank) {
    state.receive(rank, Message{MessageType::ask_late, 7}, 0, answers);
  }
  EXPECT_EQ(answers.size(), 100U);
  const std::uint64_t ticket = answers.front().message.ticket;
  answers.clear();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::uint64_t steps = rank < 40 ? 5 : 6;
    state.receive(rank, Message{MessageType::progress, ticket, steps}, 0, answers);
  }
  ASSERT_EQ(answers.size(), 200U);
  EXPECT_EQ(answers[0].message.type, MessageType::late);
  EXPECT_EQ(answers[0].message.ticket, 7U);
  EXPECT_EQ(answers[0].message.number, 39 * kOneMoreRank);
  EXPECT_EQ(answers[1].message.type, MessageType::late_end);
}

TEST(Store, TheLimitOnOpenFilesIsRaisedOrNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  { const StoreServer server(any_port(), 120); }
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, 2U * 120 + 64);
  setrlimit(RLIMIT_NOFILE, &before);
  expect_error(ErrorKind::usage, {"the bootstrap store of 4096 ranks needs", "(ulimit -n "},
               [&] { allow_open_files(before.rlim_max + 1, "the bootstrap store of 4096 ranks"); });
}

}  // namespace
}  // namespace paceline
