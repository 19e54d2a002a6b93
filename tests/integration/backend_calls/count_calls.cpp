// Loaded by LD_PRELOAD: each process appends "MPI_Allreduce N" and "gloo::allreduce N" to the file
// named by COUNT_CALLS_FILE when it ends.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <gloo/allreduce.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<int> mpi_calls{0}, gloo_calls{0};

struct AtTheEnd {
  ~AtTheEnd() {
    const char* name = std::getenv("COUNT_CALLS_FILE");
    if (name == nullptr || mpi_calls + gloo_calls == 0) return;
    std::FILE* file = std::fopen(name, "a");
    if (file == nullptr) return;
    std::fprintf(file, "MPI_Allreduce %d gloo::allreduce %d\n", mpi_calls.load(),
                 gloo_calls.load());
    std::fclose(file);
  }
} at_the_end;

}  // namespace

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm ranks) {
  if (type == MPI_FLOAT && count > 1000) ++mpi_calls;  // gradients, not what ranks agree on
  return PMPI_Allreduce(from, to, count, type, op, ranks);
}

namespace gloo {

void allreduce(const AllreduceOptions& options) {
  ++gloo_calls;
  static const auto next = reinterpret_cast<void (*)(const AllreduceOptions&)>(
      dlsym(RTLD_NEXT, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE"));
  next(options);
}

}  // namespace gloo
