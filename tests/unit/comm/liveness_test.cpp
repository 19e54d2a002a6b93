// LivenessConnection sockets: who hears of what, and when nobody hears anything.
#include "engine/comm/rendezvous/liveness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "engine/core/clock.h"
#include "tests/support/expect_error.h"
#include "tests/unit/comm/worlds.h"

namespace paceline {
namespace {

// A rank that remembers what it was told.
class Rank {
 public:
  Rank(const BootstrapAddress& where, int rank)
      : control_(std::make_unique<LivenessConnection>(where, rank, kPatience,
                                                      [this](int lost, const std::string& why) {
                                                        const std::lock_guard lock(mutex_);
                                                        ++calls_;
                                                        lost_ = lost;
                                                        why_ = why;
                                                        changed_.notify_all();
                                                      })) {}

  LivenessConnection& control() { return *control_; }
  void leave() { control_->leave(); }

  // The line heard, or nothing within the time.
  std::string heard(double seconds = kPatience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return calls_ > 0; });
    return why_;
  }
  int lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0, lost_ = -2;
  std::string why_;
  std::unique_ptr<LivenessConnection> control_;  // last: its thread uses the others
};

std::string this_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// A process that joins as a rank, says so through a pipe, and lives until it is killed. Forked
// before this process has threads.
class RankProcess {
 public:
  explicit RankProcess(int ranks = 3) {
    if (pipe(ports_) != 0 || pipe(ready_) != 0) return;
    pid_ = fork();
    if (pid_ != 0) return;
    std::uint16_t port = 0;
    if (read(ports_[0], &port, sizeof port) != sizeof port) _exit(1);
    BootstrapAddress where = any_port();
    where.ports = {port};
    where.ranks = ranks;
    const LivenessConnection control(where, 2, kPatience, [](int, const std::string&) {});
    if (write(ready_[1], "x", 1) != 1) _exit(1);
    char wait = 0;
    [[maybe_unused]] const ssize_t count = read(ports_[0], &wait, 1);
    _exit(0);  // no destructor, no goodbye
  }
  ~RankProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int number : {ports_[0], ports_[1], ready_[0], ready_[1]}) close(number);
  }

  void join(std::uint16_t port) {
    char ready = 0;
    ASSERT_EQ(write(ports_[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    ASSERT_EQ(read(ready_[0], &ready, 1), 1);
  }
  void exit() { ASSERT_EQ(write(ports_[1], "x", 1), 1); }
  // Returns once it has stopped: until then its threads may answer.
  void stop() {
    kill(pid_, SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void kill_it() { kill(pid_, SIGKILL); }

 private:
  int ports_[2] = {-1, -1}, ready_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(LivenessConnection, AKilledRankIsNamedToTheOthersAtOnce) {
  RankProcess process;
  World world(3);
  Rank zero(world.where, 0), one(world.where, 1);
  process.join(parse_port(world.server));
  const double start = now_seconds();
  process.kill_it();
  const std::string line = "rank 2 on " + this_host() + " is gone";
  EXPECT_EQ(zero.heard(), line);
  EXPECT_EQ(one.heard(), line);
  EXPECT_EQ(zero.lost(), 2);
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(LivenessConnection, ARankThatExitsWithoutGoodbyeIsGone) {
  RankProcess process;
  World world(3);
  Rank zero(world.where, 0);
  process.join(parse_port(world.server));
  process.exit();
  EXPECT_EQ(zero.heard(), "rank 2 on " + this_host() + " is gone");
}

TEST(LivenessConnection, WhoJoinsAfterALossIsInformed) {
  RankProcess process;
  World world(3);
  Rank zero(world.where, 0);
  process.join(parse_port(world.server));
  process.exit();
  EXPECT_NE(zero.heard(), "");
  Rank one(world.where, 1);
  EXPECT_EQ(one.heard(), zero.heard());
}

TEST(LivenessConnection, ACleanLeaveIsNotReported) {
  World world(2);
  Rank zero(world.where, 0);
  {
    Rank one(world.where, 1);
    one.leave();
    one.control().abort("too late to matter");
  }
  // A rank 1 that the server had not seen leave would be late.
  while (zero.control().late_ranks() != std::vector<int>{0}) continue;
  EXPECT_EQ(zero.calls(), 0);
}

TEST(LivenessConnection, AnAbortReportsWhyToAllOthersOnce) {
  World world(3);
  Rank zero(world.where, 0), one(world.where, 1), two(world.where, 2);
  one.control().abort("out of memory");
  EXPECT_EQ(zero.heard(), "rank 1: out of memory");
  EXPECT_EQ(two.heard(), "rank 1: out of memory");
  EXPECT_EQ(zero.lost(), 1);
  two.control().abort("rank 1 is gone");
  one.leave();
  two.leave();
  zero.control().late_ranks();  // what the server sent before has arrived by now
  EXPECT_EQ(zero.calls(), 1);
  EXPECT_EQ(one.calls(), 0);
}

TEST(LivenessConnection, LateRanksAreNamed) {
  World world(4);
  Rank zero(world.where, 0), one(world.where, 1), two(world.where, 2), three(world.where, 3);
  zero.control().note_progress(17);
  one.control().note_progress(16);
  two.control().note_progress(17);
  three.control().note_progress(16);
  EXPECT_EQ(zero.control().late_ranks(), (std::vector<int>{1, 3}));
  one.control().note_progress(18);
  three.control().note_progress(18);
  EXPECT_EQ(one.control().late_ranks(), (std::vector<int>{0, 2}));
}

TEST(LivenessConnection, ARankThatDoesNotAnswerIsLate) {
  RankProcess process(4);
  World world(4);
  Rank zero(world.where, 0), one(world.where, 1);
  process.join(parse_port(world.server));
  process.stop();
  zero.control().note_progress(17);
  one.control().note_progress(18);
  // Rank 2 is stopped, rank 3 never came.
  EXPECT_EQ(one.control().late_ranks(), (std::vector<int>{0, 2, 3}));
}

TEST(LivenessConnection, TheEndOfTheServerIsNoLoss) {
  auto world = std::make_unique<World>(2);
  Rank zero(world->where, 0), one(world->where, 1);
  world.reset();
  EXPECT_TRUE(zero.control().late_ranks().empty());
  EXPECT_EQ(zero.heard(0.1), "");
  EXPECT_EQ(one.heard(0.1), "");
}

TEST(LivenessConnection, AnAbortJustBeforeTheServerEndsArrives) {
  auto world = std::make_unique<World>(2);
  Rank zero(world->where, 0), one(world->where, 1);
  zero.control().abort("no such file");
  world.reset();
  EXPECT_EQ(one.heard(), "rank 0: no such file");
}

// A server that dies without a goodbye.
TEST(LivenessConnection, AVanishedServerIsItsHostsLoss) {
  for (const bool rank0_hosts : {true, false}) {
    FalseStore store(2, [](const Message&) { return ""; });
    store.where.rank0_hosts = rank0_hosts;
    Rank one(store.where, 1);
    store.vanish();
    expect_parts(one.heard(), {rank0_hosts ? "rank 0" : "starter"});
    EXPECT_EQ(one.lost(), rank0_hosts ? 0 : -1);
  }
}

Message numbered(MessageType type, std::uint64_t number) {
  Message message{type};
  message.number = number;
  return message;
}

// A store is believed only what a store of this world can say.
TEST(LivenessConnection, FalseAnswersEndTheConnection) {
  const Message false_answers[] = {
      numbered(MessageType::late, std::uint64_t{0x7fffffff} << 32),
      numbered(MessageType::late, 2),
      numbered(MessageType::gone, std::uint64_t{1} << 63),
      numbered(MessageType::gone, 2),
      Message{MessageType::gone, 0, 0, "", std::string(10000, 'w')},
      Message{MessageType::welcome},
      Message{MessageType::set},
  };
  for (const Message& answer : false_answers) {
    FalseStore store(2, [&](const Message&) { return encode(answer); });
    Rank one(store.where, 1);
    expect_parts(one.heard(), {"the connection to the bootstrap store broke"});
    one.leave();
  }
}

TEST(LivenessConnection, LateRanksOfAFalseStoreAreBounded) {
  FalseStore store(4, [&](const Message& message) {
    std::string bytes;
    if (message.type != MessageType::ask_late) return bytes;
    for (int i = 0; i < 3; ++i) {
      bytes += encode(Message{MessageType::late, message.ticket, kOneMoreRank});
    }
    return bytes;
  });
  Rank one(store.where, 1);
  EXPECT_TRUE(one.control().late_ranks().empty());
  expect_parts(one.heard(), {"too many late ranks"});
  one.leave();
}

TEST(LivenessConnection, ALineOfAFalseStoreIsOneLineOfText) {
  Message gone{MessageType::gone};
  gone.value = "\x1b[31mred\nsecond";
  FalseStore store(2, [&](const Message&) { return encode(gone); });
  Rank one(store.where, 1);
  EXPECT_EQ(one.heard(), " [31mred second");
  one.leave();
}

TEST(LivenessConnection, ARankHasOneControlSocket) {
  World world(2);
  Rank zero(world.where, 0);
  expect_error(ErrorKind::mismatch, {"rank 0 is here already"},
               [&] { Rank again(world.where, 0); });
}

}  // namespace
}  // namespace paceline
