// How the ranks of a run come about and meet: what `train` and `bench` share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/failure/verdict.h"
#include "engine/launch/topology.h"
#include "results/layout.h"
#include "run/gpus.h"

namespace paceline {

// What the ranks are of: enough to start them and to let them meet.
struct LaunchSpec {
  std::string backend;  // a stack
  std::string device = "cpu";
  Layout layout;
  bool oversubscribe = false;
  bool stops_between_steps = false;  // see SpawnRequest
  Deadlines deadlines = {};
  bool recorded = false;  // steps and collectives are kept in flight rings
  // Of a process that is ended by force, after it said why; see StallMonitor.
  std::function<void(const Error&)> last_words = {};
};

// The ranks of a backend between processes are ours to start, unless a launcher did.
bool must_spawn(const LaunchSpec& launch, const ProcessRank& process);

// Starts `command` (of this program) as every rank, through mpirun or directly as the backend
// wants it, and hosts their bootstrap store. The launcher's noise is printed, the line is not yet.
RunVerdict spawn(const LaunchSpec& launch, const std::vector<std::string>& command);

// Throws usage unless `place` has the tasks that the layout has.
void check_tasks(const LaunchSpec& launch, const ProcessRank& process);

// The CPUs of each replica of this process, and the machine they are of. A task that asks for more
// than there is (only with --oversubscribe) shares what there is; else that is refused.
struct CpuAssignment {
  std::string cpu_model;
  std::vector<CpuSet> replicas;
  int machine_cpus = 0;           // of the node, usable or not
  std::int64_t memory_bytes = 0;  // of the node
};
CpuAssignment assign_cpus(const LaunchSpec& launch, const ProcessRank& process);

// This process in the run's world, from meeting to parting.
class World {
 public:
  // Binds this process to its assignment first: threads that a backend starts for its own must not
  // wait for a CPU on which another rank computes. Then joins the bootstrap store where one is
  // known or needed, and connects the backend. Throws usage where it cannot serve.
  World(const LaunchSpec& launch, const ProcessRank& process, const CpuAssignment& assignment);
  ~World();  // says goodbye, unless an exception passes: then the other ranks hear of a loss
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::vector<std::unique_ptr<Communicator>>& communicators();  // of this process's replicas
  Backend& backend();
  const ChosenGpus& gpus() const;
  std::string description() const;  // what is really in use

  // Tells the other ranks why this one ends.
  void abort(const std::string& why) noexcept;
  // This process will end for this reason, by force if it does not by itself.
  void expect_end(const Error& why) noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// `work` for each communicator of this process, each but the first on a thread of its own. An error
// of one releases the others, and is thrown when all are back.
void on_every_replica(std::vector<std::unique_ptr<Communicator>>& communicators,
                      const std::function<void(Communicator&, std::size_t index)>& work);

}  // namespace paceline
