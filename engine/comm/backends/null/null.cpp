// Replicas as threads of one process whose gradients are not reduced at all: each trains by
// itself. Not a way to train; the difference to `mirrored` is the cost of communication.
#include <memory>

#include "engine/comm/algorithms/hierarchical.h"

namespace paceline {

namespace {

class NullCommunicator final : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  bool reduces(MemoryKind) const override { return true; }
  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void*, std::size_t, DType, Lane&, std::string_view) override {}
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }
  Support serves(const Membership& membership) const override {
    return serves_one_process(membership, name());
  }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    return connect_threads<NullCommunicator>(membership);
  }
  std::string description() const override { return "no reduction: replicas drift apart"; }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() {
  return std::make_unique<NullBackend>();
}

}  // namespace paceline
