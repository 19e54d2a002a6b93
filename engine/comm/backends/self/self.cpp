// One replica alone: every collective is over one rank.
#include <memory>

#include "engine/comm/algorithms/hierarchical.h"

namespace paceline {

namespace {

class SelfBackend final : public Backend {
 public:
  std::string_view name() const override { return "self"; }
  Support serves(const Membership& membership) const override {
    if (membership.replicas_here != 1) return Support::no("backend self supports only one replica");
    return serves_one_process(membership, name());
  }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    return connect_threads<ThreadCommunicator>(membership);
  }
  std::string description() const override { return "one replica, no communication"; }
};

}  // namespace

std::unique_ptr<Backend> make_self_backend() {
  return std::make_unique<SelfBackend>();
}

}  // namespace paceline
