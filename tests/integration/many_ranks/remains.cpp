#include "tests/integration/many_ranks/remains.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/failure/flight_ring.h"
#include "engine/failure/verdict.h"
#include "engine/launch/topology.h"
#include "run/resolve.h"
#include "tests/integration/many_ranks/world.h"
#include "tests/support/scratch.h"

namespace paceline {

namespace {

constexpr int kRanksOfNode = 8;
constexpr int kSteps = 80;  // of four collectives: the ring has gone round

std::string find_host(int rank) {
  return fmt::format("n{:04}", rank / kRanksOfNode);
}

void leave_ring(const std::filesystem::path& folder, int rank, int ranks, bool is_victim) {
  FlightRing ring({rank, ranks, rank, find_host(rank), "attempt"}, folder);
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    ring.note_step(step);
    for (const char* label : {"bucket 0", "bucket 1", "bucket 2", "bucket 3"}) {
      if (is_victim && step == kSteps) return;
      const std::uint64_t sequence = ring.queue(FlightKind::all_reduce, label, 8 << 20);
      ring.enter(sequence);
      if (step == kSteps) return;  // here it waits for the victim
      ring.leave(sequence);
    }
  }
}

// As write_status() leaves it, which syncs each file: that is the ranks' time, not the verdict's.
void leave_status(const std::filesystem::path& folder, int rank, int ranks, int victim) {
  const bool died = rank == victim;
  std::ofstream(folder / fmt::format("{}.json", rank)) << fmt::format(
      R"({{"rank": {}, "host": "{}", "pid": {}, "state": "{}", "exit_code": {}, "message": "{}",
           "time": {}, "attempt": "attempt", "size": {}}})",
      rank, find_host(rank), 1000000 + rank, died ? "running" : "failed",
      died ? 0 : exit_code(ErrorKind::peer_lost),
      died ? "" : fmt::format("rank {} on {} is gone", victim, find_host(victim)), unix_seconds(),
      ranks);
}

void leave_files(const std::filesystem::path& folder, int ranks, int victim) {
  for (int rank = 0; rank < ranks; ++rank) {
    leave_ring(folder, rank, ranks, rank == victim);
    leave_status(folder, rank, ranks, victim);
  }
}

struct Shared {
  double judged, peak;
  std::array<char, 500> line;
};

}  // namespace

RemainsFigures judge_artifacts(int ranks, int victim) {
  const Scratch scratch;
  leave_files(scratch.path(), ranks, victim);
  auto& shared = *static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t pid = fork();
  if (pid == 0) {
    const double start = now_seconds();
    const RunArtifacts artifacts = remains_of_latest(scratch.path());
    still_running(artifacts);
    const RunVerdict verdict = post_mortem(scratch.path(), artifacts);
    shared.judged = now_seconds() - start;
    shared.peak = peak_mb();
    verdict.line.copy(shared.line.data(), shared.line.size() - 1);
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  return {shared.judged, shared.peak, shared.line.data()};
}

double check_cards(int ranks) {
  std::vector<RankCard> cards(static_cast<std::size_t>(ranks));
  std::vector<GpuCard> gpus(cards.size());
  for (int rank = 0; rank < ranks; ++rank) {
    auto& card = cards[static_cast<std::size_t>(rank)];
    card.host = find_host(rank);
    const int first = rank % kRanksOfNode * 8;
    card.cpus = fmt::format("{}-{}", first, first + 7);
    Gpu gpu;
    gpu.pci = fmt::format("0000:{:02x}:00.0", rank % kRanksOfNode);
    gpus[static_cast<std::size_t>(rank)] = describe_card(gpu, find_host(rank));
  }
  const double start = now_seconds();
  check_rank_cards(cards, false);
  check_distinct(gpus, {});
  return now_seconds() - start;
}

}  // namespace paceline
