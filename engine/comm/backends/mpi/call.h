// MPI calls whose result is checked and whose waits end.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <functional>
#include <string_view>

#include "engine/comm/communicator.h"

namespace paceline::mpi {

// Throws peer_lost or internal with MPI's own text. `call` is the function's name.
void check(int code, const char* call);

// Polls until `request` is complete. Throws stall past the deadline and whatever `interrupt`
// throws; it is called now and then. The request is given up then, and MPI with it. Polls for
// `spin_seconds` without sleeping.
struct Patience {
  Deadlines deadlines;
  double spin_seconds = 0;
  std::function<void()> interrupt;
};
// Whom a wait is for: a rank of the world, or all other nodes. One that `came` to the collective is
// not to blame: its deadline is longer, so that whoever waits for the missing rank speaks first.
struct Awaited {
  int rank = -1;
  bool came = false;
};
void wait_for(MPI_Request& request, const Patience& patience, std::string_view label,
              Awaited who = {});

}  // namespace paceline::mpi
