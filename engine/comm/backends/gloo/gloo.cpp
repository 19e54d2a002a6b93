// One task a replica and no MPI: gloo::allreduce over Gloo's TCP transport.

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/algorithms/sum.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backend.h"
#include "engine/comm/checks/call_timeout.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

// gloo::allreduce over Gloo's own connections. The control plane is Paceline's.

class GlooCommunicator final : public SocketCommunicator {
 public:
  // `connections` between the members of `group`, which are the ranks of `context`. `control` knows
  // which ranks are late; may be null.
  GlooCommunicator(std::shared_ptr<gloo::Context> context, std::map<int, Descriptor> connections,
                   const RankGroup& group, const Deadlines& deadlines, LivenessConnection* control)
      : SocketCommunicator(std::move(connections), group, deadlines),
        context_(std::move(context)),
        group_(group),
        deadlines_(deadlines),
        control_(control) {}

  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    if (size() == 1 || count == 0) return;
    lane.submit([this, data, count, type, label] {
      reduce(static_cast<std::byte*>(data), count, type, label);
    });
  }

 private:
  void reduce(std::byte* data, std::size_t count, DType type, std::string_view label);

  std::shared_ptr<gloo::Context> context_;
  RankGroup group_;
  Deadlines deadlines_;
  LivenessConnection* control_;
};

void GlooCommunicator::reduce(std::byte* data, std::size_t count, DType type,
                              std::string_view label) {
  check_summable(type);
  gloo::AllreduceOptions options(context_);
  switch (size_of(type)) {
    case 2:
      options.setOutput(reinterpret_cast<std::uint16_t*>(data), count);
      break;
    case 4:
      options.setOutput(reinterpret_cast<float*>(data), count);
      break;
    default:
      options.setOutput(reinterpret_cast<double*>(data), count);
  }
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction([type](void* sum, const void* a, const void* b, std::size_t n) {
    if (sum != a) std::memcpy(sum, a, n * size_of(type));
    add_to(static_cast<std::byte*>(sum), static_cast<const std::byte*>(b), n, type);
  });
  options.setTimeout(
      std::chrono::milliseconds(static_cast<std::int64_t>(deadlines_.limit_seconds() * 1000)));
  try {
    gloo::allreduce(options);
  } catch (const gloo::Exception& error) {
    const std::string_view message = error.what();
    if (message.find("imed out") != std::string_view::npos) {
      throw timeout_error("gloo::allreduce", deadlines_, control_, label).on_rank(group_.name());
    }
    throw Error(ErrorKind::peer_lost, "a connection to another rank broke", std::string(label),
                "see the other ranks' errors")
        .on_rank(group_.name());
  }
}

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
  std::string_view name() const override { return "gloo"; }

  Support serves(const Membership& membership) const override {
    return serves_one_replica_a_task(membership, name());
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    if (membership.process.size == 1) return connect_threads<ThreadCommunicator>(membership);
    if (membership.store == nullptr) {
      throw internal_error("backend gloo was given no bootstrap store");
    }
    const RankGroup group = membership.group();
    const std::string address = membership.store->local_address();
    description_ = fmt::format("Gloo, gloo::allreduce, {} ranks over TCP, rank {} at {}",
                               group.size(), group.name(), address);
    std::vector<std::unique_ptr<Communicator>> communicators;
    communicators.push_back(std::make_unique<GlooCommunicator>(
        connect_gloo(membership, group, address),
        connect_mesh(*membership.store, group, membership.deadlines, "gloo-control"), group,
        membership.deadlines, membership.control));
    return communicators;
  }

  std::string description() const override { return description_; }

 private:
  // Gloo connects every rank with every other. Collective over the group.
  static std::shared_ptr<gloo::Context> connect_gloo(const Membership& membership,
                                                     const RankGroup& group,
                                                     const std::string& address) {
    const double seconds = membership.deadlines.limit_seconds();
    const auto context = std::make_shared<gloo::rendezvous::Context>(group.rank, group.size());
    context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
    // Gloo writes to peers that may be gone, and learns of it by EPIPE.
    std::signal(SIGPIPE, SIG_IGN);
    try {
      gloo::transport::tcp::attr where;
      where.hostname = address;
      auto device = gloo::transport::tcp::CreateDevice(where);
      Rendezvous rendezvous(*membership.store, seconds);
      context->connectFullMesh(rendezvous, device);
    } catch (const gloo::Exception& error) {
      throw Error(ErrorKind::peer_lost,
                  fmt::format("this rank cannot connect to the others: {}", error.what()),
                  "gloo at " + address,
                  "see the other ranks' errors, and check for a firewall between the nodes: Gloo "
                  "listens on ports that the system chooses")
          .on_rank(group.name());
    }
    return context;
  }

  std::string description_ = "Gloo, gloo::allreduce";
};

}  // namespace

std::unique_ptr<Backend> make_gloo_backend() {
  return std::make_unique<GlooBackend>();
}

}  // namespace paceline
