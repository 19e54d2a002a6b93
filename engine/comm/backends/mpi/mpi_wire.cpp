#include "engine/comm/backends/mpi/mpi_wire.h"

namespace paceline::mpi {

namespace {

// Below 64 KiB, up to which MPI libraries send at once over TCP: larger messages are announced and
// asked for first, and where both directions of a connection are busy the answer waits behind the
// data (measured between two: 0.69 of the link at 256 KiB, 0.94 at 56 KiB). Enough of them to fill
// a connection's buffers, few enough for a second-level cache.
constexpr Wire::Messages kMessages{56 * 1024, 32};

constexpr int kTag = 1;  // collectives of one communicator follow each other: order tells messages

}  // namespace

MpiWire::MpiWire(MPI_Comm members, const WaitDeadline& deadline, std::vector<int> names)
    : members_(members),
      deadline_(deadline),
      names_(std::move(names)),
      scratch_(kMessages.bytes * kMessages.window) {
  check(MPI_Comm_rank(members_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(members_, &size_), "MPI_Comm_size");
}

Wire::Messages MpiWire::messages() const {
  return kMessages;
}

void MpiWire::begin(std::span<std::byte>, std::string_view label) {
  label_ = label;
  for (Queue* queue : {&sent_, &received_}) {
    queue->requests.clear();
    queue->waited = 0;
  }
}

void MpiWire::send(int to, std::span<const std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (!message.empty()) {
    check(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, to, kTag, members_,
                    &request),
          "MPI_Isend");
  }
  sent_.peer = to;
  sent_.requests.push_back(request);
}

void MpiWire::receive(int from, std::span<std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (!message.empty()) {
    check(MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, from, kTag,
                    members_, &request),
          "MPI_Irecv");
  }
  received_.peer = from;
  received_.requests.push_back(request);
}

void MpiWire::wait_for_next(Queue& queue) {
  MPI_Request& request = queue.requests[queue.waited++];
  if (request == MPI_REQUEST_NULL) return;
  // Who has sent something came; if it then falls silent it waits for somebody else, who did not
  // come. What cannot be sent says nothing of who is late.
  const bool came = &queue == &sent_ || received_.waited > 1;
  const Awaited who{names_[static_cast<std::size_t>(queue.peer)], came};
  wait_for(request, deadline_, label_, who);
}

void MpiWire::wait_received() {
  wait_for_next(received_);
}

void MpiWire::wait_sent(std::size_t sends) {
  while (sent_.waited < sends) wait_for_next(sent_);
}

}  // namespace paceline::mpi
