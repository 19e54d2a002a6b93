// How the ranks of `train` and `bench` are started and meet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/facts/hardware.h"
#include "engine/failure/verdict.h"
#include "engine/launch/topology.h"
#include "results/parameters.h"
#include "run/gpus.h"

namespace paceline {

// What is needed to start ranks and to connect them.
struct LaunchSpec {
  std::string backend;  // a stack
  std::string device = "cpu";
  Layout layout;
  bool oversubscribe = false;
  bool near_gpu = true;              // cpu_binding
  bool stops_between_steps = false;  // see SpawnRequest
  Deadlines deadlines = {};
  bool recorded = false;  // records steps and collectives in flight rings
  // Called before a process is ended by force; see StallMonitor.
  std::function<void(const Error&)> on_fatal_error = {};
};

// Whether Paceline must start the ranks: the backend has several processes, and no launcher started
// them.
bool must_spawn(const LaunchSpec& launch, const ProcessRank& process);

// Starts `command` (of this program) as every rank, through mpirun or directly, and hosts the
// bootstrap store. Prints the launcher's output, but not the verdict's line.
RunVerdict spawn(const LaunchSpec& launch, const std::vector<std::string>& command);

// Starts the ranks, or does the `work` of this one. Returns the exit code.
int run_ranks(const LaunchSpec& launch, const ProcessRank& process,
              const std::vector<std::string>& command, const std::function<int()>& work);

// Throws usage unless `process` has the number of tasks of the layout.
void check_tasks(const LaunchSpec& launch, const ProcessRank& process);

// The CPUs of each replica of this process, and their machine. With --oversubscribe, a task with
// too few CPUs shares them; otherwise that is an error. Where tasks see all GPUs of the node, a
// replica's CPUs are near its GPU while there are enough, unless cpu_binding is in-order.
struct CpuAssignment {
  std::string cpu_model;
  std::vector<CpuSet> replicas;
  NodeFacts machine;
};
CpuAssignment assign_cpus(const LaunchSpec& launch, const ProcessRank& process);
CpuSet all_cpus(const std::vector<CpuSet>& sets);  // sorted

// This process in the run's world, from connecting to leaving.
class World {
 public:
  // First binds this process to its assignment, so that the backend's threads do not compete with
  // other ranks. Then joins the bootstrap store if one is known or needed, and connects the
  // backend. Throws usage if the backend cannot serve.
  World(const LaunchSpec& launch, const ProcessRank& process, const CpuAssignment& assignment);
  ~World();  // leaves cleanly; during an exception, the other ranks learn of a loss
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::vector<std::unique_ptr<Communicator>>& communicators();  // one per replica of this process
  // See Backend::connect_group. Sums of it are not recorded.
  std::unique_ptr<Communicator> connect_group(const RankGroup& group, std::string_view name);
  Backend& backend();
  const ChosenGpus& gpus() const;
  std::string description() const;  // the transport in use

  // Tells the other ranks why this one ends.
  void abort(const std::string& why) noexcept;
  // Announces the end of this process; it is forced if it does not happen.
  void expect_end(const Error& why) noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Runs `work` for each communicator of this process, all but the first on threads of their own. An
// error of one releases the others, and is thrown when all have returned.
void on_every_replica(std::vector<std::unique_ptr<Communicator>>& communicators,
                      const std::function<void(Communicator&, std::size_t index)>& work);

}  // namespace paceline
