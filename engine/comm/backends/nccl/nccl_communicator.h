// A replica on a GPU: sums through NCCL on a stream, the control plane on the host.
#pragma once

#include <memory>
#include <utility>

#include "engine/comm/backends/nccl/clique.h"
#include "engine/comm/communicator.h"

namespace paceline::nccl {

class NcclCommunicator final : public Communicator, private Supervision {
 public:
  // `control` defines the ranks. `replica` is an index within this process.
  NcclCommunicator(std::shared_ptr<NcclGroup> group, int replica,
                   std::unique_ptr<Communicator> control)
      : group_(std::move(group)), replica_(replica), control_(std::move(control)) {}

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  Memory allocate(std::size_t bytes) override { return group_->allocate(replica_, bytes); }
  bool reduces(MemoryKind kind) const override { return kind == MemoryKind::device; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  Supervision& supervision() override { return *this; }
  void broadcast(void* data, std::size_t bytes, int root) override {
    control_->broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    control_->all_gather(mine, bytes, all);
  }
  void barrier() override { control_->barrier(); }
  void abort(std::string_view why) noexcept override {
    group_->abort(why);
    control_->abort(why);
  }

 private:
  void throw_if_ended() override { group_->throw_if_ended(); }
  void begin_wait(std::string_view label) noexcept override { group_->begin_wait(replica_, label); }
  void end_wait() noexcept override { group_->end_wait(replica_); }

  std::shared_ptr<NcclGroup> group_;
  int replica_;
  std::unique_ptr<Communicator> control_;
};

}  // namespace paceline::nccl
