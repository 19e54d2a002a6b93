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

int work(const Place& place, const std::string& how) {
  if (how == "talks") {
    std::printf("rank %d of %d on %d\n", place.rank, place.size, place.local_size);
    std::fprintf(stderr, "progress of rank %d\n", place.rank);
  }
  if (how == "hangs") {
    if (place.rank == 0) throw Error(ErrorKind::stall, "rank 0: rank 1 did not come");
    sleep(60);
  }
  if (how == "silent") {
    const FlightRing ring(
        {place.rank, place.size, place.rank, host_name(), attempt_of(environment_of_process())},
        status_folder(environment_of_process()));
    raise(SIGSTOP);
  }
  if (how == "code") return place.rank == 1 ? 3 : 0;
  if (place.rank == 1 && how == "killed") raise(SIGKILL);
  if (place.rank == 1 && how == "throws") throw Error(ErrorKind::input, "a bad file", "rank1.gz");
  if (how == "waits" || (place.rank == 0 && how != "talks")) sleep(30);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int, char** argv) {
  using namespace paceline;
  const Environment environment = environment_of_process();
  const Place place = find_place(environment);
  return run_rank(environment, place, [&] { return work(place, argv[1]); });
}
