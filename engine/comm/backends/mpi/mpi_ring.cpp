// Our own sums for machines whose fast network only MPI reaches: in memory that the ranks of a node
// share, between nodes in our ring of MPI messages between their leaders.
#include <atomic>
#include <utility>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backends/mpi/mpi_backend.h"
#include "engine/comm/backends/mpi/mpi_wire.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

// Our ring over MPI messages.
class MpiRing final : public WireCommunicator {
 public:
  // `names`: the members' rank numbers, for error messages.
  MpiRing(mpi::World& world, MPI_Comm members, const Deadlines& deadlines, std::vector<int> names)
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

  mpi::World& world_;
  std::atomic<bool> aborted_{false};
  mpi::WaitDeadline deadline_;
  mpi::MpiWire wire_;
};

class MpiRingBackend final : public mpi::MpiBackend {
 public:
  std::string_view name() const override { return "mpi-ring"; }

 protected:
  std::unique_ptr<Communicator> connect_in(mpi::World& world,
                                           const Membership& membership) override {
    const auto connect = [&](MPI_Comm ranks) {
      return std::make_unique<mpi::MpiCommunicator>(world, ranks, membership.deadlines,
                                                    mpi::abort_job(world, membership));
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
  std::unique_ptr<Communicator> ring_of_all(mpi::World& world, const Deadlines& deadlines) {
    sum_ = "our ring of MPI messages";
    return std::make_unique<MpiRing>(world, world.all(), deadlines, world.names());
  }

  std::string sum_ = "one rank";
};

}  // namespace

std::unique_ptr<Backend> make_mpi_ring_backend() {
  return std::make_unique<MpiRingBackend>();
}

}  // namespace paceline
