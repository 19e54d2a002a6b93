#include "run/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "engine/comm/checks/stall_monitor.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/comm/rendezvous/server.h"
#include "engine/comm/wrappers/recorded/recorded_communicator.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/program.h"
#include "engine/meter/network.h"
#include "engine/start/spawn.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr char kLoopback[] = "127.0.0.1";
// "off": collectives are not recorded, to see what that costs. Failures then say less.
constexpr char kFlightVariable[] = "PACELINE_FLIGHT";

// A thread started within takes no signal: the main thread passes them on.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::unique_ptr<StoreServer> serve(const BootstrapAddress& where, int ranks) {
  const SignalsBlocked blocked;
  return std::make_unique<StoreServer>(where, ranks);
}

bool flight_is_on(const Environment& environment) {
  const auto entry = environment.find(kFlightVariable);
  if (entry == environment.end() || entry->second.empty() || entry->second == "on") return true;
  if (entry->second == "off") return false;
  throw usage_error(fmt::format("expected on or off, got \"{}\"", entry->second), kFlightVariable,
                    "unset it, or set it to off");
}

}  // namespace

bool must_spawn(const LaunchSpec& launch, const ProcessRank& process) {
  return launch.layout.ntasks > 1 && !process.launched;
}

RunVerdict spawn(const LaunchSpec& launch, const std::vector<std::string>& command) {
  const Layout& layout = launch.layout;
  check_mask(usable_cpus(), layout.gpus / layout.nodes, layout.cpus_per_replica,
             launch.oversubscribe);
  if (layout.nodes > 1) {
    throw usage_error(fmt::format("ranks on {} nodes cannot be started from here", layout.nodes),
                      "", "run it under srun or mpirun in an allocation of these nodes");
  }
  SpawnRequest request;
  request.command = command;
  request.command[0] = this_program().string();
  request.ranks = layout.ntasks;
  request.stops_between_steps = launch.stops_between_steps;
  request.environment = environment_of_process();
  request.silence_seconds =
      std::max(launch.deadlines.start_seconds, launch.deadlines.abort_seconds) +
      2 * StallMonitor::kGraceSeconds;
  const BootstrapAddress where = starter_bootstrap(kLoopback, request.environment);
  const auto server = serve(where, request.ranks);
  request.environment[kStoreVariable] = server->address();
  request.environment[kTokenVariable] = where.token;
  const bool mpirun = find_name("backend", launch.backend).mpirun;
  RunVerdict verdict = mpirun ? spawn_ranks(request) : spawn_direct(request);
  if (!verdict.noise.empty()) print_note("{}\n", verdict.noise);
  return verdict;
}

int run_ranks(const LaunchSpec& launch, const ProcessRank& process,
              const std::vector<std::string>& command, const std::function<int()>& work) {
  if (!must_spawn(launch, process)) return run_rank(environment_of_process(), process, work);
  const RunVerdict verdict = spawn(launch, command);
  if (!verdict.line.empty()) print_note("paceline: {}\n", verdict.line);
  return verdict.exit_code;
}

void check_tasks(const LaunchSpec& launch, const ProcessRank& process) {
  const Layout& layout = launch.layout;
  if (process.size == layout.ntasks) return;
  throw usage_error(
      fmt::format("{} tasks were started ({}), but gpus={} with backend {} is {}", process.size,
                  process.evidence, layout.gpus, launch.backend, layout.ntasks),
      "", fmt::format("start {} tasks or set --gpus", layout.ntasks));
}

namespace {

// The NUMA node of each replica's GPU, of one task of this node after the other. Nothing if that is
// not known or does not matter, or a task sees GPUs of its own only: who hid the others gave it
// CPUs, too.
std::vector<int> numa_of_gpus(const LaunchSpec& launch, const Topology& topology,
                              std::size_t replicas) {
  const auto driver =
      launch.near_gpu && !topology.gpu_numa.empty() ? load_driver(launch.device) : nullptr;
  if (!driver) return {};
  std::string why;
  const std::vector<VisibleGpu> visible = driver->visible(why);
  std::vector<int> numa;
  for (std::size_t i = 0; i < std::min(replicas, visible.size()); ++i) {
    numa.push_back(topology.numa_of_gpu(visible[i].pci).value_or(kAnyNuma));
  }
  return numa.size() < replicas ? std::vector<int>() : numa;
}

}  // namespace

CpuAssignment assign_cpus(const LaunchSpec& launch, const ProcessRank& process) {
  const Layout& layout = launch.layout;
  const int replicas_here = layout.gpus / layout.ntasks;
  check_mask(usable_cpus(), replicas_here, layout.cpus_per_replica, launch.oversubscribe);
  const Topology topology = topology_of_machine();
  const int cpus_of_one = std::min(layout.cpus_per_task, static_cast<int>(topology.cpus.size()));
  const std::vector<int> numa =
      numa_of_gpus(launch, topology, static_cast<std::size_t>(process.local_size * replicas_here));
  std::vector<int> of_tasks, of_replicas;
  for (std::size_t i = 0; i < numa.size(); ++i) {
    const int task = static_cast<int>(i) / replicas_here;
    if (static_cast<int>(i) % replicas_here == 0) of_tasks.push_back(numa[i]);
    if (task == process.local_rank) of_replicas.push_back(numa[i]);
  }
  const CpuSet mine = cpus_of_task(topology.cpus, process, cpus_of_one, of_tasks);
  std::vector<Cpu> cpus = topology.cpus;
  std::erase_if(cpus, [&](const Cpu& cpu) { return !std::ranges::count(mine, cpu.id); });
  return {topology.cpu_model,
          split_cpus(cpus, replicas_here, layout.cpus_per_replica, of_replicas),
          {topology.machine_cpus, topology.memory_bytes, network_ports()}};
}

CpuSet all_cpus(const std::vector<CpuSet>& sets) {
  std::set<int> all;
  for (const CpuSet& cpus : sets) all.insert(cpus.begin(), cpus.end());
  return {all.begin(), all.end()};
}

// Members are destroyed from the last to the first: who talks before whom it talks through.
struct World::Parts {
  ChosenGpus gpus;
  std::unique_ptr<StoreServer> server;  // where this rank hosts it
  std::unique_ptr<StoreClient> client;
  std::unique_ptr<LivenessConnection> control;
  std::shared_ptr<Recording> recording;  // null: nothing is recorded
  std::unique_ptr<StallMonitor> stall_monitor;
  std::unique_ptr<Backend> backend;
  Membership membership;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::mutex mutex;  // of what follows, and of `communicators` against the control's thread
  std::optional<std::string> lost;
  int exceptions_at_start = std::uncaught_exceptions();

  void join_store(const ProcessRank& process, const Deadlines& deadlines) {
    const Environment environment = environment_of_process();
    const BootstrapAddress where = find_bootstrap(process, environment);
    if (where.rank0_hosts && process.rank == 0) server = serve(where, process.size);
    const SignalsBlocked blocked;
    const double seconds = deadlines.limit_seconds();
    client = std::make_unique<StoreClient>(where, process.rank, seconds);
    control = std::make_unique<LivenessConnection>(
        where, process.rank, seconds, [this](int, const std::string& why) { lose(why); });
    stall_monitor->set_control(control.get());
    log::debug("bootstrap store at {}", client->server());
  }

  // A flight ring for each replica here.
  void open_rings(const ProcessRank& process, int replicas_here) {
    const Environment environment = environment_of_process();
    const auto folder = status_folder(environment);
    recording = std::make_shared<Recording>();
    recording->stall_monitor = stall_monitor.get();
    for (int i = 0; i < replicas_here; ++i) {
      const FlightRing::Identity identity{process.rank * replicas_here + i,
                                          process.size * replicas_here, process.rank, host_name(),
                                          find_attempt(environment)};
      recording->rings.push_back(std::make_shared<FlightRing>(identity, folder));
      if (folder && !recording->rings.back()->why().empty()) {
        log::warning("a post-mortem will not show the last step of rank {}: {}", identity.rank,
                     recording->rings.back()->why());
      }
    }
    stall_monitor->watch(recording->rings);
  }

  std::vector<std::unique_ptr<Communicator>> recorded(
      std::vector<std::unique_ptr<Communicator>> plain) const {
    if (!recording) return plain;
    std::vector<std::unique_ptr<Communicator>> around;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      around.push_back(std::make_unique<RecordedCommunicator>(std::move(plain[i]), recording, i));
    }
    return around;
  }

  void lose(const std::string& why) {
    stall_monitor->expect_end(Error(ErrorKind::peer_lost, why));
    std::lock_guard lock(mutex);
    lost = why;
    client->interrupt(why);
    for (auto& communicator : communicators) communicator->abort(why);
  }
};

World::World(const LaunchSpec& launch, const ProcessRank& process, const CpuAssignment& assignment)
    : parts_(std::make_unique<Parts>()) {
  bind_this_thread(all_cpus(assignment.replicas));
  if (const std::string note = set_aside_note(); !note.empty()) log::info("{}", note);
  Membership membership{.process = process,
                        .replicas_here = launch.layout.gpus / launch.layout.ntasks,
                        .deadlines = launch.deadlines};
  membership.on_fatal_error = [process, more = launch.on_fatal_error](const Error& error) {
    write_fatal_status(environment_of_process(), process, error);
    if (more) more(error);
  };
  parts_->stall_monitor = std::make_unique<StallMonitor>(
      StallMonitor::Setup{membership.deadlines, process.rank * membership.replicas_here,
                          membership.replicas_here, membership.on_fatal_error});
  membership.stall_monitor = parts_->stall_monitor.get();
  if (launch.recorded && flight_is_on(environment_of_process())) {
    parts_->open_rings(process, membership.replicas_here);
    const auto& recording = parts_->recording;
    membership.deadlines.settled = {recording, &recording->settled};
    parts_->stall_monitor->settle_by(membership.deadlines.settled);
  }
  parts_->gpus = ChosenGpus(launch.device, launch.backend, process, membership.replicas_here);
  membership.gpus = parts_->gpus.replicas();
  parts_->backend = make_backend(launch.backend, backend_table(), wrapper_table(),
                                 membership.gpus ? MemoryKind::device : MemoryKind::host);
  if (const Support support = parts_->backend->serves(membership); !support) {
    throw usage_error(
        fmt::format("backend {} cannot be used: {}", parts_->backend->name(), support.because()));
  }
  // MPI ranks meet by MPI; a store then only carries news of a loss.
  const bool store_is_known = environment_of_process().count(kStoreVariable) != 0;
  if (process.size > 1 && (find_name("backend", launch.backend).needs_store || store_is_known)) {
    parts_->join_store(process, membership.deadlines);
    membership.store = parts_->client.get();
    membership.control = parts_->control.get();
    if (parts_->recording) {
      parts_->recording->control = parts_->control.get();
      membership.progress_is_noted = true;
      // The stall monitor warns: it hears from the store who is late.
      membership.deadlines.warn_seconds = std::numeric_limits<double>::infinity();
    }
  }
  auto communicators = parts_->recorded(parts_->backend->connect(membership));
  parts_->membership = membership;
  std::lock_guard lock(parts_->mutex);
  parts_->communicators = std::move(communicators);
  if (parts_->lost) throw Error(ErrorKind::peer_lost, *parts_->lost);
}

World::~World() {
  if (std::uncaught_exceptions() > parts_->exceptions_at_start) abort("it ended with an error");
  parts_->stall_monitor->set_control(nullptr);
  // The control's thread may be aborting them.
  parts_->control.reset();
  const StallMonitor::Call leaving(parts_->stall_monitor.get(), "leaving the other ranks",
                                   "see the other ranks' errors");
  parts_->communicators.clear();
  parts_->backend.reset();
}

std::vector<std::unique_ptr<Communicator>>& World::communicators() {
  return parts_->communicators;
}

std::unique_ptr<Communicator> World::connect_group(const RankGroup& group, std::string_view name) {
  return parts_->backend->connect_group(parts_->membership, group, name);
}

Backend& World::backend() {
  return *parts_->backend;
}

const ChosenGpus& World::gpus() const {
  return parts_->gpus;
}

std::string World::description() const {
  return parts_->backend->description();
}

void World::abort(const std::string& why) noexcept {
  if (parts_->control) parts_->control->abort(why);
}

void World::expect_end(const Error& why) noexcept {
  parts_->stall_monitor->expect_end(why);
}

void on_every_replica(std::vector<std::unique_ptr<Communicator>>& communicators,
                      const std::function<void(Communicator&, std::size_t index)>& work) {
  FirstError first;
  const auto guarded = [&](std::size_t i) {
    try {
      work(*communicators[i], i);
    } catch (const std::exception& error) {
      first.keep();
      communicators[i]->abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < communicators.size(); ++i) threads.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace paceline
