// Ranks of an MPI communicator. Sums are MPI_Allreduce; the control plane is non-blocking calls
// that are polled, so that deadlines hold.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/comm/backends/mpi/world.h"
#include "engine/comm/checks/call_timeout.h"
#include "engine/comm/communicator.h"
#include "engine/comm/transport/socket_wire.h"
#include "engine/core/dtype.h"

namespace paceline::mpi {

// MPI_Allreduce in place, of every type that gradients have, under a timeout.

// What happens when MPI_Allreduce does not return: called with the sum's label. It must end the
// process, as the call cannot be interrupted.
using OnTimeout = std::function<void(const std::string& label)>;

class AllReduce {
 public:
  // Over the members of `ranks`.
  AllReduce(MPI_Comm ranks, const Deadlines& deadlines, OnTimeout on_timeout);
  ~AllReduce();
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  // The blocking call: MPI_Iallreduce could be polled, but it is another algorithm, 1.2 to 2.1
  // times as slow from 4 B to 8 MB (README.md).
  void sum(std::byte* data, std::size_t count, DType type, std::string_view label);

 private:
  MPI_Comm ranks_;
  CallTimeout timeout_;
  // Sums of 16-bit floats, which MPI lacks: added in fp32, rounded to nearest even.
  MPI_Op sum_bf16_ = MPI_OP_NULL, sum_f16_ = MPI_OP_NULL;
};

// The component of the MPI library whose all-reduce serves `ranks`: "tuned", "han". It is read off
// the call stack of a reduction. Empty: this MPI has no components, or they have no files of their
// own. Collective over `ranks`.
std::string all_reduce_component(MPI_Comm ranks);

// Whether MPI_Allreduce takes a GPU's memory, as the library states it (MPIX_Query_cuda_support of
// Open MPI and MPICH), on every rank of `ranks`, and none has PACELINE_MPI_GPU_MEMORY=off.
// Collective over them.
bool takes_gpu_memory(MPI_Comm ranks);

class MpiCommunicator final : public Communicator {
 public:
  // `ranks` belongs to the world. `select_gpu`: makes the replica's GPU the current device of the
  // calling thread, where MPI takes its memory; else empty.
  MpiCommunicator(World& world, MPI_Comm ranks, const Deadlines& deadlines, OnTimeout on_timeout,
                  std::function<void()> select_gpu = {});

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Memory allocate(std::size_t) override { return {}; }
  // A GPU's in fp32 or fp64, as gradients are: our sums of 16-bit floats read host memory.
  bool reduces(MemoryKind kind) const override {
    return kind != MemoryKind::device || select_gpu_ != nullptr;
  }
  bool sums_from_host() const override { return select_gpu_ != nullptr; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void barrier() override;
  void abort(std::string_view) noexcept override { world_.fail(); }

 private:
  World& world_;
  MPI_Comm ranks_;
  int rank_ = 0, size_ = 1;
  WaitDeadline deadline_;
  AllReduce all_reduce_;
  std::function<void()> select_gpu_;
};

// A wire of MPI messages between the members of a communicator, e.g. the leaders of nodes.

class MpiWire final : public Wire {
 public:
  // `deadline` outlives the wire. `names[member]` is its rank in the world, for error messages.
  MpiWire(MPI_Comm members, const WaitDeadline& deadline, std::vector<int> names);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Messages messages() const override;
  std::span<std::byte> scratch() override { return scratch_; }
  void begin(std::span<std::byte> data, std::string_view label) override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> message) override;
  void wait_received() override;
  void wait_sent(std::size_t sends) override;

 private:
  // Requests in the order of their creation. Storage is reused from call to call.
  struct Queue {
    std::vector<MPI_Request> requests;
    std::size_t waited = 0;
    int peer = 0;
  };
  void wait_for_next(Queue& queue);

  MPI_Comm members_;
  const WaitDeadline& deadline_;
  std::vector<int> names_;
  int rank_ = 0, size_ = 1;
  std::vector<std::byte> scratch_;
  Queue sent_, received_;
  std::string_view label_;
};

// The common part of the backends on MPI: whether MPI can serve, and joining its world.

class MpiBackend : public Backend {
 public:
  Support serves(const Membership& membership) const override;
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) final;
  std::unique_ptr<Communicator> connect_group(const Membership& membership, const RankGroup& group,
                                              std::string_view name) final;
  std::string library() const override { return library_version(); }
  std::string description() const final;

 protected:
  // This process's communicator; null if it is not to be connected. Collective over the world.
  virtual std::unique_ptr<Communicator> connect_in(World& world, const Membership& membership) = 0;
  // How the ranks sum, after "Open MPI v4.1.4, 4 ranks on 2 nodes, ".
  virtual std::string sum() const = 0;

 private:
  std::unique_ptr<World> world_;
};

// Ends the job of a membership when MPI_Allreduce does not return: writes the reason with the late
// ranks, if a store knows them, then calls MPI_Abort.
OnTimeout abort_job(const World& world, const Membership& membership);

}  // namespace paceline::mpi
