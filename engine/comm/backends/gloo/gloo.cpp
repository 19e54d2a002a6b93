// One task a replica and no MPI: in memory that the ranks of one machine share, else in our ring
// over sockets of our own. Gloo itself is "gloo+flat", and what measurements stand beside.
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <memory>
#include <string>

#include "engine/comm/algorithms/shared_communicator.h"
#include "engine/comm/algorithms/threads.h"
#include "engine/comm/backend.h"
#include "engine/comm/backends/gloo/gloo_communicator.h"
#include "engine/comm/rendezvous/client.h"
#include "engine/comm/transport/mesh.h"

namespace paceline {

namespace {

// What Gloo asks of a rendezvous, answered by the run's own store.
class Rendezvous final : public gloo::rendezvous::Store {
 public:
  Rendezvous(StoreClient& store, double seconds) : store_(store), seconds_(seconds) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = wait_for(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) wait_for(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  // Gloo's keys are ranks.
  std::string wait_for(const std::string& key) {
    return store_.get("gloo/" + key, seconds_, "the address of rank " + key);
  }

  StoreClient& store_;
  double seconds_;
};

class GlooBackend final : public Backend {
 public:
  std::string_view name() const override { return flat_ ? "gloo+flat" : "gloo"; }

  Support serves(const Membership& membership) const override {
    if (membership.replicas_here != 1) {
      return Support::no(
          fmt::format("backend gloo needs one task per replica, but this task has {} replicas: "
                      "start one task for each, or use mirrored/gloo",
                      membership.replicas_here));
    }
    return Support::yes();
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    if (membership.process.size == 1) return connect_threads<ThreadCommunicator>(membership);
    if (membership.store == nullptr) {
      throw Error(ErrorKind::internal, "backend gloo was given no bootstrap store");
    }
    const ProcessRank& process = membership.process;
    store_ = membership.store;
    rank_ = process.rank;
    size_ = process.size;
    ranks_a_task_ = membership.ranks_a_task;
    deadlines_ = membership.deadlines;
    address_ = store_->local_address();
    std::vector<std::unique_ptr<Communicator>> communicators;
    communicators.push_back(flat_ ? flat_communicator() : own_communicator());
    return communicators;
  }

  Baseline baseline() override {
    if (flat_ || size_ == 0) return {};
    Baseline baseline{"gloo::allreduce", {}};
    baseline.communicators.push_back(flat_communicator());
    return baseline;
  }

  bool flatten() override {
    flat_ = true;
    return true;
  }

  std::string description() const override {
    if (size_ == 0) return flat_ ? "Gloo, gloo::allreduce" : "our ring";
    if (flat_) return fmt::format("Gloo, gloo::allreduce, {} ranks over TCP, {}", size_, where());
    return fmt::format("{}, {}", sum_, where());
  }

 private:
  std::string where() const { return fmt::format("rank {} at {}", rank_, address_); }

  // In memory where all ranks are of one machine, else in our ring over sockets. Collective.
  std::unique_ptr<Communicator> own_communicator() {
    auto sockets = std::make_unique<SocketCommunicator>(
        connect_mesh(*store_, rank_, size_, deadlines_, ranks_a_task_), rank_, size_, deadlines_,
        ranks_a_task_);
    const std::string transport = sockets->description();
    if (auto shared = SharedCommunicator::make(sockets, deadlines_, ranks_a_task_)) {
      sum_ = fmt::format("shared memory of {} ranks, control over {}", size_, transport);
      return shared;
    }
    sum_ = fmt::format("our ring, {} ranks over {}", size_, transport);
    return sockets;
  }

  // Gloo connects every rank with every other. Collective.
  std::unique_ptr<Communicator> flat_communicator() const {
    const double seconds = deadlines_.limit_seconds();
    const auto context = std::make_shared<gloo::rendezvous::Context>(rank_, size_);
    context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
    // Gloo writes to peers that may be gone; it hears of it by EPIPE.
    std::signal(SIGPIPE, SIG_IGN);
    try {
      gloo::transport::tcp::attr where;
      where.hostname = address_;
      auto device = gloo::transport::tcp::CreateDevice(where);
      Rendezvous rendezvous(*store_, seconds);
      context->connectFullMesh(rendezvous, device);
    } catch (const gloo::Exception& error) {
      throw Error(ErrorKind::peer_lost,
                  fmt::format("this rank cannot connect to the others: {}", error.what()),
                  "gloo at " + address_,
                  "see the other ranks' errors, and check for a firewall between the nodes: Gloo "
                  "listens on ports that the system chooses")
          .on_rank(rank_ * ranks_a_task_);
    }
    return std::make_unique<gloo_backend::FlatCommunicator>(
        context, connect_mesh(*store_, rank_, size_, deadlines_, ranks_a_task_, "gloo+flat"),
        deadlines_, ranks_a_task_);
  }

  bool flat_ = false;
  StoreClient* store_ = nullptr;
  int rank_ = 0, size_ = 0, ranks_a_task_ = 1;
  Deadlines deadlines_;
  std::string address_, sum_;
};

}  // namespace

std::unique_ptr<Backend> make_gloo_backend() {
  return std::make_unique<GlooBackend>();
}

}  // namespace paceline
