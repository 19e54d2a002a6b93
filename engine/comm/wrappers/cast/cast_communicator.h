// Sends fp32 gradients as bf16: rounds them to nearest even, lets the wrapped backend sum in
// fp32 (which rounds its sums again), and widens the result. Other types are not changed.
#pragma once

#include <memory>

#include "engine/comm/communicator.h"

namespace paceline {

class CastCommunicator final : public Communicator {
 public:
  explicit CastCommunicator(std::unique_ptr<Communicator> inner);

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  // The arena stays in the device's memory. The 16-bit copy uses the backend's best memory.
  Memory allocate(std::size_t bytes) override;
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override {
    inner_->broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    inner_->all_gather(mine, bytes, all);
  }
  void barrier() override { inner_->barrier(); }
  Supervision& supervision() override { return inner_->supervision(); }
  void abort(std::string_view why) noexcept override { inner_->abort(why); }

 private:
  std::unique_ptr<Communicator> inner_;
  Memory travelling_;  // destroyed before inner_, which may own it
};

}  // namespace paceline
