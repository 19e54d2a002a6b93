#include "engine/comm/backends/mpi/mpi_communicator.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "engine/core/error.h"

namespace paceline::mpi {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;  // MPI counts with an int

}  // namespace

MpiCommunicator::MpiCommunicator(World& world, MPI_Comm ranks, const Deadlines& deadlines,
                                 OnTimeout on_timeout)
    : world_(world),
      ranks_(ranks),
      deadline_{deadlines, world.spin_seconds(), {}},
      all_reduce_(ranks, deadlines, std::move(on_timeout)) {
  check(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
}

void MpiCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                 std::string_view label) {
  if (size_ == 1) return;
  lane.submit([this, data, count, type, label] {
    all_reduce_.sum(static_cast<std::byte*>(data), count, type, label);
  });
}

void MpiCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t at = 0; at < bytes; at += kMostBytes) {
    const auto n = static_cast<int>(std::min(kMostBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(to + at, n, MPI_BYTE, root, ranks_, &request), "MPI_Ibcast");
    wait_for(request, deadline_, "broadcast");
  }
}

void MpiCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  if (bytes > INT_MAX) throw Error(ErrorKind::internal, "more than 2 GB to gather from a rank");
  const auto n = static_cast<int>(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, ranks_, &request), "MPI_Iallgather");
  wait_for(request, deadline_, "all-gather");
}

void MpiCommunicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(ranks_, &request), "MPI_Ibarrier");
  wait_for(request, deadline_, "barrier");
}

}  // namespace paceline::mpi
