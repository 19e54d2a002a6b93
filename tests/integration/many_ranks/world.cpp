#include "tests/integration/many_ranks/world.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/checks/config_check.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/comm/rendezvous/server.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "run/resolve.h"

namespace paceline {

namespace {

constexpr double kPatience = 120;        // of a rank, on a busy machine
constexpr int kMostRanksAProcess = 256;  // each is two threads and some thirty descriptors
constexpr int kDescriptorsOfRank = 40;

// One clock for all processes of the machine.
double clock_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What a rank tells the others of this test, in memory that all processes share.
struct Seat {
  std::atomic<double> joined, met, agreed, differed, heard;
  std::array<char, 160> line, fault;  // what it heard of the victim; what went wrong
};

class Seats {
 public:
  explicit Seats(int ranks) : ranks_(ranks) {
    seats_ = static_cast<Seat*>(mmap(nullptr, sizeof(Seat) * static_cast<std::size_t>(ranks),
                                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  Seat& of(int rank) const { return seats_[rank]; }
  int ranks() const { return ranks_; }

  double last(std::atomic<double> Seat::*when, int without = -1) const {
    double last = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != without) last = std::max(last, (seats_[rank].*when).load());
    }
    return last;
  }
  int missing(std::atomic<double> Seat::*when) const {
    return static_cast<int>(
        std::count_if(seats_, seats_ + ranks_, [&](Seat& seat) { return (seat.*when) == 0; }));
  }

 private:
  Seat* seats_;
  int ranks_;
};

template <std::size_t size>
void note(std::array<char, size>& place, const std::string& text) {
  text.copy(place.data(), size - 1);
}

// What is_a_rank() shares with the thread that hears of a loss, as run/world.cpp has it.
struct Ends {
  std::mutex mutex;
  StoreClient* client = nullptr;
  SocketCommunicator* communicator = nullptr;
  std::string lost;
};

void append(Ends& ends, Seat& seat, const std::string& why) {
  seat.heard = clock_seconds();
  note(seat.line, why);
  const std::lock_guard lock(ends.mutex);
  ends.lost = why;
  if (ends.client != nullptr) ends.client->interrupt(why);
  if (ends.communicator != nullptr) ends.communicator->abort(why);
}

std::vector<ConfigRow> rows_of_rank(int rank, int other) {
  std::vector<ConfigRow> rows;
  for (int row = 0; row < 40; ++row) rows.push_back({fmt::format("parameter_{}", row), "value"});
  rows.push_back({"learning_rate", rank == other ? "0.01" : "0.001"});
  return rows;
}

// The victim comes to no second barrier, and waits to be killed.
void is_a_rank(const BootstrapAddress& where, int rank, const Seats& seats, int victim) {
  Seat& seat = seats.of(rank);
  try {
    Ends ends;
    StoreClient client(where, rank, kPatience);
    LivenessConnection control(where, rank, kPatience,
                               [&](int, const std::string& why) { append(ends, seat, why); });
    seat.joined = clock_seconds();

    const Deadlines deadlines{kPatience, kPatience, kPatience};
    std::vector<std::unique_ptr<Communicator>> communicators;
    {
      const RankGroup group = RankGroup::numbered(rank, seats.ranks());
      auto made = std::make_unique<SocketCommunicator>(connect_mesh(client, group, deadlines),
                                                       group, deadlines);
      const std::lock_guard lock(ends.mutex);
      ends.client = &client;
      ends.communicator = made.get();
      communicators.push_back(std::move(made));
    }
    seat.met = clock_seconds();

    exchange_rank_cards(communicators, {{rank % 8}}, rows_of_rank(rank, -1));
    seat.agreed = clock_seconds();

    try {
      check_same_config(*communicators[0], rows_of_rank(rank, victim));
      note(seat.fault, "it did not see that a rank has another configuration");
    } catch (const Error& error) {
      const std::string words = error.what();
      if (words.find(fmt::format("rank {} 0.01", victim)) == std::string::npos)
        note(seat.fault, words);
    }
    seat.differed = clock_seconds();

    if (rank == victim) pause();
    try {
      communicators[0]->barrier();
      note(seat.fault, "its barrier ended without the victim");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::peer_lost) note(seat.fault, error.what());
    }
    while (seat.heard == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(ends.mutex);
    ends.client = nullptr;
    ends.communicator = nullptr;
  } catch (const std::exception& error) {
    note(seat.fault, error.what());
    for (auto when : {&Seat::joined, &Seat::met, &Seat::agreed, &Seat::differed, &Seat::heard}) {
      if (seat.*when == 0) seat.*when = clock_seconds();
    }
  }
}

// A process that waits for the store's port and then is ranks [first, end).
class RankProcess {
 public:
  RankProcess(const Seats& seats, int first, int end, int victim) {
    if (pipe(port_) != 0) throw Error(ErrorKind::internal, "no pipe");
    pid_ = fork();
    if (pid_ != 0) return;
    BootstrapAddress where;
    where.host = "127.0.0.1";
    where.token = "many";
    where.ranks = seats.ranks();
    where.ports.resize(1);
    if (read(port_[0], where.ports.data(), sizeof where.ports[0]) <= 0) _exit(1);
    std::vector<std::thread> threads;
    for (int rank = first; rank < end; ++rank) {
      threads.emplace_back([&, rank] { is_a_rank(where, rank, seats, victim); });
    }
    for (std::thread& thread : threads) thread.join();
    _exit(0);
  }
  ~RankProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(port_[0]);
    close(port_[1]);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void start(std::uint16_t port) const {
    if (write(port_[1], &port, sizeof port) != sizeof port)
      throw Error(ErrorKind::internal, "pipe");
  }
  void end() const { kill(pid_, SIGKILL); }

 private:
  int port_[2] = {-1, -1};
  pid_t pid_ = -1;
};

int ranks_of_process() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto fit = static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1 << 20)) / kDescriptorsOfRank;
  return std::clamp(fit - 1, 1, kMostRanksAProcess);
}

void check(const Seats& seats, int victim, WorldFigures& figures) {
  const std::string gone = fmt::format("rank {} on ", victim);
  for (int rank = 0; rank < seats.ranks(); ++rank) {
    const Seat& seat = seats.of(rank);
    std::string fault = seat.fault.data();
    const std::string line = seat.line.data();
    if (fault.empty() && rank != victim && !(line.starts_with(gone) && line.ends_with(" is gone")))
      fault = line;
    if (!fault.empty()) figures.faults.push_back(fmt::format("rank {}: {}", rank, fault));
  }
}

}  // namespace

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

WorldFigures run_world(int ranks) {
  const Seats seats(ranks);
  const int victim = ranks - 1, many = ranks_of_process();
  std::vector<std::unique_ptr<RankProcess>> processes;
  for (int first = 1; first < victim; first += many) {
    processes.push_back(
        std::make_unique<RankProcess>(seats, first, std::min(first + many, victim), victim));
  }
  processes.push_back(std::make_unique<RankProcess>(seats, victim, ranks, victim));

  const double start = clock_seconds();
  BootstrapAddress where;
  where.host = "127.0.0.1";
  where.token = "many";
  where.ranks = ranks;
  where.ports = {0};
  const StoreServer server(where, ranks);
  where.ports = {static_cast<std::uint16_t>(*to_integer(split(server.address(), ':').back()))};
  for (const auto& process : processes) process->start(where.ports.front());
  std::thread rank0([&] { is_a_rank(where, 0, seats, victim); });

  WorldFigures figures;
  const auto wait = [&](std::atomic<double> Seat::*when, int missing) {
    while (seats.missing(when) > missing && clock_seconds() - start < 2 * kPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  };
  wait(&Seat::differed, 0);
  figures.joined = seats.last(&Seat::joined) - start;
  figures.met = seats.last(&Seat::met) - start;
  figures.agreed = seats.last(&Seat::agreed) - start;
  figures.differed = seats.last(&Seat::differed) - seats.last(&Seat::agreed);
  const std::filesystem::directory_iterator open("/proc/self/fd"), end;
  figures.rank0_descriptors = static_cast<int>(std::distance(open, end));
  figures.rank0_mb = peak_mb();

  const double killed = clock_seconds();
  processes.back()->end();
  wait(&Seat::heard, 1);
  figures.heard = seats.last(&Seat::heard, victim) - killed;
  rank0.join();
  check(seats, victim, figures);
  return figures;
}

}  // namespace paceline
