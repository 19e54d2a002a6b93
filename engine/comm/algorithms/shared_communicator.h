// Ranks that are processes of one machine, without MPI. Sums use shared memory (node_all_reduce.h),
// the control plane uses sockets.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/comm/algorithms/node_all_reduce.h"
#include "engine/comm/algorithms/socket_communicator.h"
#include "engine/comm/transport/shared_parts.h"

namespace paceline {

class SharedCommunicator final : public Communicator {
 public:
  // Collective over `control`. Takes `control` if all its ranks run on one machine and can share
  // memory. Else returns null on all ranks, and `control` stays.
  static std::unique_ptr<SharedCommunicator> make(std::unique_ptr<SocketCommunicator>& control,
                                                  const Deadlines& deadlines, int ranks_a_task);

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  Memory allocate(std::size_t bytes) override;
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override {
    control_->broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    control_->all_gather(mine, bytes, all);
  }
  void barrier() override { control_->barrier(); }
  void abort(std::string_view why) noexcept override;

 private:
  SharedCommunicator(std::unique_ptr<SocketCommunicator> control,
                     std::unique_ptr<SharedParts> shared, const Deadlines& deadlines,
                     double spin_microseconds, int ranks_a_task);

  std::unique_ptr<SocketCommunicator> control_;
  std::unique_ptr<SharedParts> shared_;  // first part: the state; then scratch in each
  std::unique_ptr<SharedParts> arena_;
  std::vector<std::byte*> scratch_;
  NodeAllReduce reduction_;
};

}  // namespace paceline
