#include "engine/comm/backends/mpi/window.h"

#include <cstdint>
#include <cstring>
#include <functional>

#include "engine/comm/transport/shared_parts.h"
#include "engine/launch/shared_memory.h"

namespace paceline::mpi {

namespace {

constexpr std::size_t kPage = 4096;

// MPI may put the parts at any address; what lies between them lets each begin on a page, too.
std::size_t with_slack(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage + kBetweenParts;
}

std::byte* next_page(void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::byte*>(address) + (kPage - number % kPage) % kPage;
}

}  // namespace

Window::Window(const World& world, std::size_t bytes, const Patience& patience)
    : world_(world), bytes_(bytes) {
  check_room_on_node(patience);
  void* base = nullptr;
  check(MPI_Win_allocate_shared(static_cast<MPI_Aint>(with_slack(bytes)), 1, MPI_INFO_NULL,
                                world.node(), &base, &window_),
        "MPI_Win_allocate_shared");
  find_parts();
  std::memset(mine(), 0, bytes_);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(world.node(), &request), "MPI_Ibarrier");
  wait_for(request, patience, "window");
}

// All ranks of the node get the same two numbers, so that all refuse or none.
void Window::check_room_on_node(const Patience& patience) const {
  const auto folder = shared_memory_folder(environment_of_process());
  std::int64_t wanted = static_cast<std::int64_t>(with_slack(bytes_));
  std::int64_t free = free_bytes(folder);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT64_T, MPI_SUM, world_.node(), &request),
        "MPI_Iallreduce");
  wait_for(request, patience, "size of the window");
  check(MPI_Iallreduce(MPI_IN_PLACE, &free, 1, MPI_INT64_T, MPI_MIN, world_.node(), &request),
        "MPI_Iallreduce");
  wait_for(request, patience, "room for the window");
  check_room(wanted, free, folder);
}

void Window::find_parts() {
  for (int rank = 0; rank < world_.node_size(); ++rank) {
    MPI_Aint bytes = 0;
    int unit = 1;
    void* base = nullptr;
    check(MPI_Win_shared_query(window_, rank, &bytes, &unit, &base), "MPI_Win_shared_query");
    parts_.push_back(next_page(base));
  }
}

bool Window::holds(const void* data, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(data);
  const std::less_equal<> before;  // of pointers into different objects
  return before(mine(), first) && before(first + bytes, mine() + bytes_);
}

Window::~Window() {
  if (!world_.failing()) MPI_Win_free(&window_);
}

}  // namespace paceline::mpi
