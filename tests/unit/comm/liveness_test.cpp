// LivenessConnection sockets: who hears of what, and when nobody hears anything.
#include "engine/comm/rendezvous/liveness.h"

#include <gtest/gtest.h>
#include <poll.h>
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
  RankProcess() {
    if (pipe(ports_) != 0 || pipe(ready_) != 0) return;
    pid_ = fork();
    if (pid_ != 0) return;
    std::uint16_t port = 0;
    if (read(ports_[0], &port, sizeof port) != sizeof port) _exit(1);
    BootstrapAddress where = any_port();
    where.ports = {port};
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
  RankProcess process;
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

// A server that dies without a goodbye: a listener that greets and closes.
TEST(LivenessConnection, AVanishedServerIsItsHostsLoss) {
  for (const bool rank0_hosts : {true, false}) {
    const Descriptor listener = listen_at(loopback(), 0);
    BootstrapAddress where = any_port();
    where.ports = {find_local_port(listener)};
    where.rank0_hosts = rank0_hosts;
    Descriptor peer;
    std::thread server([&] {
      wait_for(listener, POLLIN, Deadline(kPatience));
      peer = Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
      send_all(peer, encode(Message{MessageType::welcome}), Deadline(kPatience));
    });
    Rank one(where, 1);
    server.join();
    peer.close();
    expect_parts(one.heard(), {rank0_hosts ? "rank 0" : "starter"});
    EXPECT_EQ(one.lost(), rank0_hosts ? 0 : -1);
  }
}

TEST(LivenessConnection, ARankHasOneControlSocket) {
  World world(2);
  Rank zero(world.where, 0);
  expect_error(ErrorKind::mismatch, {"rank 0 is here already"},
               [&] { Rank again(world.where, 0); });
}

}  // namespace
}  // namespace paceline
