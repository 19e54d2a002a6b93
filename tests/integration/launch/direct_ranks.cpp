// A rank of direct_test.cpp: direct_ranks CASE.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "engine/core/error.h"
#include "engine/failure/flight_ring.h"
#include "engine/failure/rank_status.h"

namespace paceline {
namespace {

int work(const ProcessRank& process, const std::string& how) {
  if (how == "talks") {
    std::printf("rank %d of %d on %d\n", process.rank, process.size, process.local_size);
    std::fprintf(stderr, "progress of rank %d\n", process.rank);
  }
  if (how == "hangs") {
    if (process.rank == 0) throw Error(ErrorKind::stall, "rank 0: rank 1 did not come");
    sleep(60);
  }
  if (how == "silent") {
    const FlightRing ring({process.rank, process.size, process.rank, host_name(),
                           find_attempt(environment_of_process())},
                          status_folder(environment_of_process()));
    raise(SIGSTOP);
  }
  if (how == "code") return process.rank == 1 ? 3 : 0;
  if (process.rank == 1 && how == "killed") raise(SIGKILL);
  if (process.rank == 1 && how == "throws") throw Error(ErrorKind::input, "a bad file", "rank1.gz");
  if (how == "waits" || (process.rank == 0 && how != "talks")) sleep(30);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int, char** argv) {
  using namespace paceline;
  const Environment environment = environment_of_process();
  const ProcessRank process = find_process_rank(environment);
  return run_rank(environment, process, [&] { return work(process, argv[1]); });
}
