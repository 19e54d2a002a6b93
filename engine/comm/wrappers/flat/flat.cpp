// "mpi+flat" reduces by MPI_Allreduce: what a program gets that leaves the choice to its library.
#include <fmt/format.h>

#include "engine/comm/backend.h"
#include "engine/core/error.h"

namespace paceline {

std::unique_ptr<Backend> make_flat_wrapper(std::unique_ptr<Backend> inner) {
  if (inner->flatten()) return inner;
  throw Error(
      ErrorKind::usage,
      fmt::format("backend {} has no all-reduce of a library that +flat could use", inner->name()),
      "", "put +flat directly behind mpi");
}

}  // namespace paceline
