#include "cli/start.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/comm/bootstrap/client.h"
#include "engine/comm/bootstrap/control.h"
#include "engine/comm/bootstrap/server.h"
#include "engine/comm/stack.h"
#include "engine/comm/table.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/launch/affinity.h"
#include "engine/launch/program.h"
#include "engine/launch/spawn.h"
#include "engine/launch/status.h"
#include "engine/launch/threads.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr char kLoopback[] = "127.0.0.1";

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

CpuSet all_of(const Quarters& quarters) {
  CpuSet all;
  for (const CpuSet& cpus : quarters.replicas) all.insert(all.end(), cpus.begin(), cpus.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// MPI ranks meet by MPI; the store then only carries word of a loss.
bool needs_store(const Gathering& gathering) {
  return !find_name("backend", gathering.backend).mpirun;
}

}  // namespace

bool must_spawn(const Gathering& gathering, const Place& place) {
  return gathering.layout.ntasks > 1 && !place.launched;
}

int spawn(const Gathering& gathering, const std::vector<std::string>& command) {
  const Layout& layout = gathering.layout;
  check_mask(usable_cpus(), layout.gpus / layout.nodes, layout.cpus_per_replica,
             gathering.oversubscribe);
  if (layout.nodes > 1) {
    throw Error(ErrorKind::usage, fmt::format("{} nodes cannot be started from here", layout.nodes),
                "", "run it under srun or mpirun in an allocation of these nodes");
  }
  SpawnRequest request;
  request.command = command;
  request.command[0] = this_program().string();
  request.ranks = layout.ntasks;
  request.stops_between_steps = gathering.stops_between_steps;
  request.environment = environment_of_process();
  const BootstrapAddress where = starter_bootstrap(kLoopback, request.environment);
  const auto server = serve(where, request.ranks);
  request.environment[kStoreVariable] = server->address();
  request.environment[kTokenVariable] = where.token;
  const bool mpirun = find_name("backend", gathering.backend).mpirun;
  const Verdict verdict = mpirun ? spawn_ranks(request) : spawn_direct(request);
  if (!verdict.noise.empty()) fmt::print(stderr, "{}\n", verdict.noise);
  if (!verdict.line.empty()) fmt::print(stderr, "paceline: {}\n", verdict.line);
  return verdict.exit_code;
}

void check_tasks(const Gathering& gathering, const Place& place) {
  const Layout& layout = gathering.layout;
  if (place.size == layout.ntasks) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} tasks were started ({}), but gpus={} with backend {} is {}", place.size,
                  place.evidence, layout.gpus, gathering.backend, layout.ntasks),
      "", fmt::format("start {} tasks or set --gpus", layout.ntasks));
}

Quarters find_quarters(const Gathering& gathering, const Place& place) {
  const Layout& layout = gathering.layout;
  const int replicas_here = layout.gpus / layout.ntasks;
  check_mask(usable_cpus(), replicas_here, layout.cpus_per_replica, gathering.oversubscribe);
  const Topology topology = topology_of_machine();
  const int cpus_of_one = std::min(layout.cpus_per_task, static_cast<int>(topology.cpus.size()));
  const CpuSet mine = cpus_of_task(topology.cpus, place, cpus_of_one);
  std::vector<Cpu> cpus;
  for (const Cpu& cpu : topology.cpus) {
    if (std::find(mine.begin(), mine.end(), cpu.id) != mine.end()) cpus.push_back(cpu);
  }
  return {topology.cpu_model, split_cpus(cpus, replicas_here, layout.cpus_per_replica)};
}

// Members are destroyed from the last to the first: who talks before whom it talks through.
struct World::Parts {
  ChosenGpus gpus;
  std::unique_ptr<StoreServer> server;  // where this rank hosts it
  std::unique_ptr<StoreClient> client;
  std::unique_ptr<Control> control;
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::mutex mutex;  // of what follows, and of `communicators` against the control's thread
  std::optional<std::string> lost;
  int exceptions_at_start = std::uncaught_exceptions();

  void join_store(const Place& place, const Deadlines& deadlines) {
    const Environment environment = environment_of_process();
    const BootstrapAddress where = find_bootstrap(place, environment);
    if (where.rank0_hosts && place.rank == 0) server = serve(where, place.size);
    const SignalsBlocked blocked;
    client = std::make_unique<StoreClient>(where, place.rank, deadlines.abort_seconds);
    control = std::make_unique<Control>(where, place.rank, deadlines.abort_seconds,
                                        [this](int, const std::string& why) { lose(why); });
    log::debug("bootstrap store at {}", client->server());
  }

  void lose(const std::string& why) {
    std::lock_guard lock(mutex);
    lost = why;
    client->interrupt(why);
    for (auto& communicator : communicators) communicator->abort(why);
  }
};

World::World(const Gathering& gathering, const Place& place, const Quarters& quarters)
    : parts_(std::make_unique<Parts>()) {
  bind_this_thread(all_of(quarters));
  Membership membership;
  membership.place = place;
  membership.replicas_here = gathering.layout.gpus / gathering.layout.ntasks;
  membership.last_words = [place](const Error& error) {
    leave_last_words(environment_of_process(), place, error);
  };
  parts_->gpus = ChosenGpus(gathering.device, gathering.backend, place, membership.replicas_here);
  membership.gpus = parts_->gpus.replicas();
  parts_->backend = make_backend(gathering.backend, backend_table(), wrapper_table(),
                                 membership.gpus ? MemoryKind::device : MemoryKind::host);
  if (const Support support = parts_->backend->serves(membership); !support) {
    throw Error(ErrorKind::usage, fmt::format("backend {} cannot serve: {}",
                                              parts_->backend->name(), support.because()));
  }
  const bool store_is_known = environment_of_process().count(kStoreVariable) != 0;
  if (place.size > 1 && (needs_store(gathering) || store_is_known)) {
    parts_->join_store(place, membership.deadlines);
    membership.store = parts_->client.get();
    membership.control = parts_->control.get();
  }
  auto communicators = parts_->backend->connect(membership);
  std::lock_guard lock(parts_->mutex);
  parts_->communicators = std::move(communicators);
  if (parts_->lost) throw Error(ErrorKind::peer_lost, *parts_->lost);
}

World::~World() {
  if (std::uncaught_exceptions() > parts_->exceptions_at_start) abort("it ended with an error");
  // The control's thread may be aborting them.
  parts_->control.reset();
}

std::vector<std::unique_ptr<Communicator>>& World::communicators() {
  return parts_->communicators;
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

namespace {

class FirstError {
 public:
  void keep() {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

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
