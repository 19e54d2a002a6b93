// MPI calls with checked results and bounded waits.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <functional>
#include <string_view>

#include "engine/comm/communicator.h"

namespace paceline::mpi {

// Throws peer_lost or internal with MPI's error text. `call` is the function's name.
void check(int code, const char* call);

// How wait_for() waits: polls for `spin_seconds`, then sleeps between polls. Throws stall past the
// deadline, and whatever `interrupt` throws, which it calls repeatedly. After an error, the request
// is abandoned and MPI must not be used.
struct WaitDeadline {
  Deadlines deadlines;
  double spin_seconds = 0;
  std::function<void()> interrupt;
};
// The peer of a wait: a rank of the world, or any other (-1). If it already `came` to the
// collective, the deadline is longer, so that the rank that waits for the missing one reports
// first.
struct Awaited {
  int rank = -1;
  bool came = false;
};
void wait_for(MPI_Request& request, const WaitDeadline& deadline, std::string_view label,
              Awaited who = {});

}  // namespace paceline::mpi
