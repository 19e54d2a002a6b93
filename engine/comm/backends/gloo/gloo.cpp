// One task a replica that talk over TCP by Gloo; no MPI.
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <memory>
#include <string>

#include "engine/comm/algorithms/threads.h"
#include "engine/comm/backend.h"
#include "engine/comm/backends/gloo/gloo_communicator.h"
#include "engine/comm/rendezvous/client.h"

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
          fmt::format("backend gloo has one replica a task, not {}: start a task for each, or use "
                      "mirrored/gloo",
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
    const double seconds = membership.deadlines.limit_seconds();
    address_ = membership.store->local_address();
    size_ = process.size;
    const auto context = std::make_shared<gloo::rendezvous::Context>(process.rank, process.size);
    context_ = context;
    deadlines_ = membership.deadlines;
    context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
    std::signal(SIGPIPE,
                SIG_IGN);  // Gloo writes to peers that may be gone; it hears of it by EPIPE
    try {
      gloo::transport::tcp::attr where;
      where.hostname = address_;
      auto device = gloo::transport::tcp::CreateDevice(where);
      Rendezvous rendezvous(*membership.store, seconds);
      context->connectFullMesh(rendezvous, device);
    } catch (const gloo::Exception& error) {
      throw Error(ErrorKind::peer_lost,
                  fmt::format("no connection to the other ranks: {}", error.what()),
                  "gloo at " + address_,
                  "see the other ranks' errors, and whether a firewall is "
                  "between the nodes: Gloo listens on ports that the system chooses")
          .on_rank(process.rank);
    }
    std::vector<std::unique_ptr<Communicator>> communicators;
    if (flat_) {
      communicators.push_back(std::make_unique<gloo_backend::FlatCommunicator>(
          context, membership.deadlines, membership.ranks_a_task));
    } else {
      communicators.push_back(std::make_unique<gloo_backend::GlooCommunicator>(
          context, membership.deadlines, membership.ranks_a_task));
    }
    return communicators;
  }

  Baseline baseline() override {
    if (flat_ || !context_) return {};
    Baseline baseline{"gloo::allreduce", {}};
    baseline.communicators.push_back(
        std::make_unique<gloo_backend::FlatCommunicator>(context_, deadlines_, 1));
    return baseline;
  }

  bool flatten() override {
    flat_ = true;
    return true;
  }

  std::string description() const override {
    const std::string what = flat_ ? "Gloo, gloo::allreduce" : "Gloo, our ring";
    if (size_ == 0) return what;
    return fmt::format("{}, {} ranks over TCP, rank 0 at {}", what, size_, address_);
  }

 private:
  std::shared_ptr<gloo::Context> context_;
  Deadlines deadlines_;
  bool flat_ = false;
  std::string address_;
  int size_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_gloo_backend() {
  return std::make_unique<GlooBackend>();
}

}  // namespace paceline
