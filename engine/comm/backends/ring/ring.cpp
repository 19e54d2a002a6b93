// Our own sums, one task a replica: in memory that the ranks of a node share, between nodes in a
// ring over sockets, or ("ring/mpi") by another backend.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backend.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

class RingBackend final : public Backend {
 public:
  // `between` sums between nodes; null: our ring does.
  explicit RingBackend(std::unique_ptr<Backend> between = nullptr)
      : between_(std::move(between)),
        name_(between_ ? fmt::format("ring/{}", between_->name()) : "ring") {}

  std::string_view name() const override { return name_; }

  Support serves(const Membership& membership) const override {
    if (const Support support = serves_one_replica_a_task(membership, name_); !support)
      return support;
    return between_ ? between_->serves(membership) : Support::yes();
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    if (membership.process.size == 1) return connect_threads<ThreadCommunicator>(membership);
    if (membership.store == nullptr) {
      throw internal_error("backend ring was given no bootstrap store");
    }
    store_ = membership.store;
    const RankGroup all = membership.group();
    auto sockets = connect_sockets(all, membership.deadlines, "mesh");
    where_ = fmt::format("{}, rank {} at {}", sockets->description(), all.name(),
                         store_->local_address());
    std::vector<std::unique_ptr<Communicator>> communicators;
    const NodeGroups nodes = find_nodes(*sockets);
    if (auto shared = share_memory(sockets, all, nodes, membership.deadlines)) {
      if (nodes.nodes() > 1) shared->connect_leaders(connect_leaders(membership, nodes));
      communicators.push_back(std::move(shared));
    } else if (between_) {
      sum_ = "no memory shared";
      return between_->connect(membership);
    } else {
      sum_ = fmt::format("our ring of {} ranks", all.size());
      communicators.push_back(std::move(sockets));
    }
    return communicators;
  }

  // Over sockets, also within a node.
  std::unique_ptr<Communicator> connect_group(const Membership& membership, const RankGroup& group,
                                              std::string_view name) override {
    if (between_) return between_->connect_group(membership, group, name);
    if (group.rank < 0) return nullptr;
    return connect_sockets(group, membership.deadlines,
                           fmt::format("{}/{}", name, group.names.front()));
  }

  std::unique_ptr<Backend> around(std::unique_ptr<Backend> between) override {
    return std::make_unique<RingBackend>(std::move(between));
  }

  std::string library() const override { return between_ ? between_->library() : ""; }

  std::string description() const override {
    if (store_ == nullptr) return "our ring";
    const std::string ours = fmt::format("{}, control over {}", sum_, where_);
    return between_ ? fmt::format("{}; between nodes {}", ours, between_->description()) : ours;
  }

 private:
  std::unique_ptr<SocketCommunicator> connect_sockets(const RankGroup& group,
                                                      const Deadlines& deadlines,
                                                      std::string_view name) const {
    return std::make_unique<SocketCommunicator>(connect_mesh(*store_, group, deadlines, name),
                                                group, deadlines);
  }

  // Collective. Takes `sockets` if the ranks of each node can share memory, else returns null. Of
  // nodes with one rank each there is nothing to share.
  std::unique_ptr<NodeCommunicator> share_memory(std::unique_ptr<SocketCommunicator>& sockets,
                                                 const RankGroup& all, const NodeGroups& nodes,
                                                 const Deadlines& deadlines) {
    const auto size = static_cast<std::size_t>(all.size());
    const bool fits = nodes.mine.size() <= static_cast<std::size_t>(kMaxTeam);
    std::vector<char> fit(size);
    sockets->all_gather(&fits, 1, fit.data());
    if (nodes.nodes() == size || std::find(fit.begin(), fit.end(), 0) != fit.end()) return nullptr;

    const RankGroup node = subgroup(all, nodes.mine);
    NodeSetup setup;
    setup.names = node.names;
    setup.deadlines = deadlines;
    setup.spin_microseconds = nodes.has_cpu_each ? kSpinMicroseconds : 0;
    setup.watch = [control = sockets.get()](std::string_view label) {
      control->check_connections(label);
    };
    if (nodes.nodes() > 1) {
      setup.node = connect_sockets(node, deadlines, fmt::format("node/{}", node.names.front()));
    }
    setup.all = std::move(sockets);
    auto shared = NodeCommunicator::make(setup);
    if (!shared) {
      sockets.reset(static_cast<SocketCommunicator*>(setup.all.release()));
      return nullptr;
    }
    sum_ = fmt::format("shared memory of {}", counted(all.size(), "rank"));
    if (nodes.nodes() > 1) {
      sum_ +=
          fmt::format(" on {} nodes{}", nodes.nodes(), between_ ? "" : ", our ring between them");
    }
    return shared;
  }

  // Collective over all ranks. Null on ranks that lead no node.
  std::unique_ptr<Communicator> connect_leaders(Membership membership, const NodeGroups& nodes) {
    membership.deadlines = deadlines_of_leader(membership.deadlines);
    membership.only = nodes.leaders;
    const RankGroup leaders = membership.group();
    if (between_) {
      auto connected = between_->connect(membership);
      return connected.empty() ? nullptr : std::move(connected.front());
    }
    if (leaders.rank < 0) return nullptr;
    return connect_sockets(leaders, membership.deadlines, "leaders");
  }

  std::unique_ptr<Backend> between_;
  std::string name_;
  StoreClient* store_ = nullptr;
  std::string sum_, where_;
};

}  // namespace

std::unique_ptr<Backend> make_ring_backend() {
  return std::make_unique<RingBackend>();
}

}  // namespace paceline
