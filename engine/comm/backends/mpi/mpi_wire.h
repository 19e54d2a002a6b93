// A wire of MPI messages between the members of a communicator, e.g. the leaders of nodes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/comm/backends/mpi/call.h"
#include "engine/comm/transport/wire.h"

namespace paceline::mpi {

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

}  // namespace paceline::mpi
