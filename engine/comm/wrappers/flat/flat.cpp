// "mpi+flat" reduces by MPI_Allreduce: what a program gets that leaves the choice to its library.
#include <fmt/format.h>

#include "engine/comm/backend.h"
#include "engine/core/error.h"

namespace paceline {

std::unique_ptr<Backend> make_flat_wrapper(std::unique_ptr<Backend> inner) {
  if (inner->flatten()) return inner;
  throw Error(ErrorKind::usage,
              fmt::format("+flat needs a backend with a library's own all-reduce, and {} has none",
                          inner->name()),
              "", "put +flat directly after mpi or gloo");
}

}  // namespace paceline
