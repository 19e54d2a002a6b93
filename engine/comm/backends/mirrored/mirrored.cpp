// Replicas as threads of one process that reduce through their common memory, as the mirrored
// strategy of other frameworks places them: one task a node.
#include <memory>
#include <utility>

#include "engine/comm/algorithms/hierarchical.h"

namespace paceline {

namespace {

class MirroredBackend final : public Backend {
 public:
  std::string_view name() const override { return "mirrored"; }
  Support serves(const Membership& membership) const override {
    return serves_one_process(membership, name());
  }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    return connect_threads<ThreadCommunicator>(membership);
  }
  std::unique_ptr<Backend> around(std::unique_ptr<Backend> between) override {
    return make_hierarchical_backend(name(), std::move(between));
  }
  std::string_view on_gpus() const override { return "nccl"; }
  std::string description() const override { return "threads of one process, shared memory"; }
};

}  // namespace

std::unique_ptr<Backend> make_mirrored_backend() {
  return std::make_unique<MirroredBackend>();
}

}  // namespace paceline
