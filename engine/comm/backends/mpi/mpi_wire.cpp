#include <atomic>
#include <utility>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backends/mpi/mpi_communicator.h"
#include "engine/core/error.h"

namespace paceline::mpi {

namespace {

// Below 64 KiB, up to which MPI libraries send at once over TCP: larger messages are announced and
// asked for first, and where both directions of a connection are busy the answer waits behind the
// data (measured between two: 0.69 of the link at 256 KiB, 0.94 at 56 KiB). Enough of them to fill
// a connection's buffers, few enough for a second-level cache.
constexpr Wire::Messages kMessages{56 * 1024, 32};

constexpr int kTag = 1;  // collectives of one communicator follow each other: order tells messages

// Our ring over MPI messages.
class MpiRing final : public WireCommunicator {
 public:
  // `names`: the members' rank numbers, for error messages.
  MpiRing(World& world, MPI_Comm members, const Deadlines& deadlines, std::vector<int> names)
      : WireCommunicator(wire_),
        world_(world),
        deadline_{deadlines, world.spin_seconds(), [this] { throw_if_aborted(); }},
        wire_(members, deadline_, std::move(names)) {}

  void abort(std::string_view) noexcept override {
    world_.fail();
    aborted_ = true;
  }

 private:
  void throw_if_aborted() const {
    if (!aborted_) return;
    throw Error(ErrorKind::peer_lost, "another rank gave up", "the ring between nodes",
                "see that rank's error");
  }

  World& world_;
  std::atomic<bool> aborted_{false};
  WaitDeadline deadline_;
  MpiWire wire_;
};

class MpiRingBackend final : public MpiBackend {
 public:
  std::string_view name() const override { return "mpi-ring"; }

 protected:
  std::unique_ptr<Communicator> connect_in(World& world, const Membership& membership) override {
    const auto connect = [&](MPI_Comm ranks) {
      return std::make_unique<MpiCommunicator>(world, ranks, membership.deadlines,
                                               abort_job(world, membership));
    };
    if (world.size() == 1) return connect(world.all());
    if (world.nodes() == world.size()) return ring_of_all(world, membership.deadlines);
    NodeSetup setup;
    setup.all = connect(world.all());
    if (world.nodes() > 1) setup.node = connect(world.node());
    setup.names = world.node_names();
    setup.deadlines = membership.deadlines;
    setup.spin_microseconds = world.spin_seconds() * 1e6;
    auto ranks = NodeCommunicator::make(setup);
    const Deadlines of_leaders = deadlines_of_leader(membership.deadlines);
    if (!ranks) return ring_of_all(world, membership.deadlines);
    sum_ = "memory that the ranks of a node share";
    if (world.nodes() == 1) return ranks;
    sum_ += ", our ring of MPI messages between nodes";
    ranks->connect_leaders(
        world.node_rank() != 0
            ? nullptr
            : std::make_unique<MpiRing>(world, world.leaders(), of_leaders, world.leader_names()));
    return ranks;
  }
  std::string sum() const override { return sum_; }

 private:
  // Where ranks cannot share memory, or have a node each.
  std::unique_ptr<Communicator> ring_of_all(World& world, const Deadlines& deadlines) {
    sum_ = "our ring of MPI messages";
    return std::make_unique<MpiRing>(world, world.all(), deadlines, world.names());
  }

  std::string sum_ = "one rank";
};

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

namespace paceline {

// Our own sums for machines whose fast network only MPI reaches: in memory that the ranks of a node
// share, between nodes in our ring of MPI messages between their leaders.
std::unique_ptr<Backend> make_mpi_ring_backend() {
  return std::make_unique<mpi::MpiRingBackend>();
}

}  // namespace paceline
