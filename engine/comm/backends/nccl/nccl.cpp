// Replicas on GPUs that sum through NCCL: a task each, or several to a task ("mirrored" on GPUs).

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backend.h"
#include "engine/comm/backends/nccl/library.h"
#include "engine/comm/backends/nccl/nccl_group.h"
#include "engine/comm/communicator.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"

namespace paceline {

namespace {

using nccl::NcclGroup;

// A replica on a GPU: sums through NCCL on a stream, the control plane on the host.

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
  bool can_sum_in_graphs() const override { return !group_->quirks().no_sums_in_graphs; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    void* const stream = lane.native();
    if (stream == nullptr) {
      throw usage_error("backend nccl sums on a GPU's stream only", std::string(label),
                        "choose --device cuda, or another backend");
    }
    if (lane.replays()) return group_->note_replay(replica_);
    group_->all_reduce(replica_, data, count, type, stream, label);
  }
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

// To NCCL with NCCL_HOSTID, and here, ranks of one card are nodes of their own.
bool is_node_of_its_own(const Membership& membership) {
  return membership.replicas_here == 1 && are_nccl_ranks_nodes(environment_of_process());
}

std::vector<GpuCard> gather_cards(const Membership& membership, Communicator* between) {
  std::string node = host_name();
  const bool is_own = is_node_of_its_own(membership);
  if (is_own) {
    node = fmt::format("{}-{}", membership.process.rank, node);
    setenv("NCCL_HOSTID", node.c_str(), 1);
  }
  std::vector<GpuCard> mine;
  for (const Gpu& gpu : membership.gpus->gpus) {
    mine.push_back(describe_card(gpu, node));
    if (is_own) mine.back().uuid = {};
  }
  if (between == nullptr) return mine;
  std::vector<GpuCard> all(mine.size() * static_cast<std::size_t>(between->size()));
  between->all_gather(mine.data(), mine.size() * sizeof(GpuCard), all.data());
  return all;
}

// To see what non-blocking calls cost.
bool asked_to_block() {
  const Environment environment = environment_of_process();
  const auto asked = environment.find("PACELINE_NCCL_BLOCKING");
  return asked != environment.end() && asked->second == "1";
}

// NCCL refuses such cards too, later and in fewer words.
void check_cards(const std::vector<GpuCard>& cards, const nccl::Library& library, bool one_each) {
  const Environment environment = environment_of_process();
  const nccl::Quirks quirks = nccl::find_quirks(library.version);
  const bool shares = one_each && is_nccl_sharing_enabled(environment);
  if (!shares || quirks.no_shared_cards) {
    check_distinct(cards, environment,
                   shares ? fmt::format("ranks share a card from NCCL 2.30.3 on, and this is {}",
                                        library.version_text())
                          : "");
  }
  if (!quirks.no_mig_slices) return;
  std::vector<GpuCard> seen = cards;  // as this version tells them apart
  for (GpuCard& card : seen) {
    if (std::string_view(card.uuid.data()).starts_with("MIG-")) card.uuid = {};
  }
  check_distinct(seen, environment,
                 fmt::format("MIG slices of a GPU are the same to {}: use NCCL 2.30 or newer, a "
                             "GPU for each rank, or backend ring, mpi or gloo",
                             library.version_text()));
}

std::shared_ptr<SocketCommunicator> connect_tasks(const Membership& membership) {
  if (membership.process.size == 1) return nullptr;
  if (membership.store == nullptr) {
    throw internal_error("backend nccl was given no bootstrap store");
  }
  const Membership leader =
      membership.replicas_here == 1 ? membership : leader_membership(membership);
  const RankGroup tasks = leader.group();
  return std::make_shared<SocketCommunicator>(
      connect_mesh(*membership.store, tasks, leader.deadlines), tasks, leader.deadlines);
}

class NcclBackend final : public Backend {
 public:
  std::string_view name() const override { return "nccl"; }

  bool needs_gpus() const override { return true; }
  Support serves(const Membership& membership) const override {
    try {
      library_ = nccl::open_library();
      quirks_ = nccl::find_quirks(library_->version);
      if (membership.gpus != nullptr) return Support::yes();
      return Support::no(
          fmt::format("{} reduces only in GPU memory, and these replicas have no GPUs: use "
                      "--device cuda, or backend ring, mpi, gloo or mirrored",
                      library_->version_text()));
    } catch (const Error& error) {
      return Support::no(error.what());
    }
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    library_ = nccl::open_library();
    const ProcessRank& process = membership.process;
    const bool has_nodes = process.local_size < process.size || is_node_of_its_own(membership);
    quirks_ =
        nccl::find_quirks(library_->version, {membership.replicas_here > 1, has_nodes, false});
    const auto tasks = connect_tasks(membership);
    const std::vector<GpuCard> cards = gather_cards(membership, tasks.get());
    check_cards(cards, *library_, membership.replicas_here == 1);
    gpus_ = cards.size();
    for (const GpuCard& card : cards) hosts_of_ranks_.emplace_back(card.host.data());
    hosts_ = std::set(hosts_of_ranks_.begin(), hosts_of_ranks_.end()).size();

    auto control =
        tasks ? connect_around(tasks, membership) : connect_threads<ThreadCommunicator>(membership);
    if (gpus_ == 1) return control;
    log_ = std::make_shared<nccl::DebugLog>(environment_of_process());
    if (quirks_.no_graph_registration) setenv("NCCL_GRAPH_REGISTER", "0", 0);
    if (quirks_.no_sums_in_graphs) {
      log::warning("{}: {}", library_->version_text(), quirks_.text);
    }
    const auto nccl_group = std::make_shared<NcclGroup>(
        NcclGroup::Setup{library_, membership, share_id(membership, tasks.get()), asked_to_block(),
                         [tasks] {
                           if (tasks) tasks->check_connections();
                         },
                         [log = log_] { return log->warnings(); }, quirks_});
    log_->take();
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (auto& replica : control) {
      communicators.push_back(std::make_unique<NcclCommunicator>(
          nccl_group, static_cast<int>(communicators.size()), std::move(replica)));
    }
    return communicators;
  }

  // Of tasks with one replica each.
  std::unique_ptr<Communicator> connect_group(const Membership& membership, const RankGroup& group,
                                              std::string_view name) override {
    if (group.rank < 0) return nullptr;
    const auto tasks = std::make_shared<SocketCommunicator>(
        connect_mesh(*membership.store, group, membership.deadlines,
                     fmt::format("{}/{}", name, group.names.front())),
        group, membership.deadlines);
    Membership members = membership;
    members.process.rank = group.rank;
    members.process.size = group.size();
    members.replicas_here = 1;
    members.control = nullptr;  // which counts the ranks of the world
    const auto nccl_group = std::make_shared<NcclGroup>(NcclGroup::Setup{
        library_, members, share_id(members, tasks.get()), asked_to_block(),
        [tasks] { tasks->check_connections(); },
        [log = log_] { return log ? log->warnings() : ""; }, quirks_, group.names});
    return std::make_unique<NcclCommunicator>(nccl_group, 0,
                                              std::move(connect_around(tasks, members).front()));
  }

  std::string library() const override { return library_ ? library_->version_text() : ""; }

  std::string description() const override {
    if (!library_) return "NCCL";
    const std::string what =
        fmt::format("{} ({})", library_->version_text(), library_->library.path());
    const std::string quirks = quirks_.text.empty() ? "" : "; " + quirks_.text;
    if (!log_) return what + quirks;
    if (const std::string detour = log_->detour(hosts_of_ranks_); !detour.empty() && !reported_) {
      reported_ = true;
      log::warning(
          "NCCL connects {} of one node instead of copying between their GPUs directly; let each "
          "task see all GPUs of its node (--gres=gpu:N --gpu-bind=none), unless the cards cannot",
          detour);
    }
    return fmt::format("{}, {} GPUs of {}, {}{}", what, gpus_, counted(hosts_, "node"),
                       log_->transports(), quirks);
  }

 private:
  ncclUniqueId share_id(const Membership& membership, Communicator* tasks) const {
    ncclUniqueId id{};
    if (membership.process.rank == 0 && library_->get_unique_id(&id) != ncclSuccess) {
      throw internal_error(fmt::format("NCCL: {}", library_->last_error(nullptr)),
                           library_->library.path(), "see NCCL_DEBUG=INFO");
    }
    if (tasks != nullptr) tasks->broadcast(&id, sizeof id, 0);
    return id;
  }

  mutable std::shared_ptr<const nccl::Library> library_;  // by serves(), or connect()
  mutable nccl::Quirks quirks_;                           // those that matter here, once connected
  std::shared_ptr<nccl::DebugLog> log_;
  std::vector<std::string> hosts_of_ranks_;
  mutable bool reported_ = false;  // of a detour
  std::size_t gpus_ = 0, hosts_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_nccl_backend() {
  return std::make_unique<NcclBackend>();
}

}  // namespace paceline
