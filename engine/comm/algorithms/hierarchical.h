// "mirrored/mpi": replicas of a task are threads that reduce in their common memory. The first
// replica of each task, its leader, reduces the tasks' sums through another backend. Ranks are
// numbered task by task.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/backend.h"

namespace paceline {

// "inside/between", where `between` has one communicator per task.
std::unique_ptr<Backend> make_hierarchical_backend(std::string_view inside,
                                                   std::unique_ptr<Backend> between);

// Leaders wait longer than the others: those know which replica did not come, leaders only which
// task or node.
Deadlines deadlines_of_leader(Deadlines deadlines);

// The membership of a task's leader in the backend between tasks.
Membership leader_membership(Membership membership);

// One communicator for each replica of this task. `between` is the leader's communicator with the
// other tasks.
std::vector<std::unique_ptr<Communicator>> connect_around(std::shared_ptr<Communicator> between,
                                                          const Membership& membership);

// Replicas as threads of one process: the common part of `mirrored`, `null` and `self`.

// Shared by all threads of a process: the barrier's state and each rank's current pointer.
struct ThreadTeam {
  NodeAllReduceState control{};
  std::vector<std::byte*> parts;
};

class ThreadCommunicator : public Communicator {
 public:
  // `names`: rank numbers for error messages, if they differ from the ranks here.
  ThreadCommunicator(std::shared_ptr<ThreadTeam> shared, int rank, const Deadlines& deadlines,
                     std::vector<int> names = {});

  int rank() const override { return reduction_.rank(); }
  int size() const override { return reduction_.size(); }
  // Apart from the other replicas' memory, see kBetweenParts.
  Memory allocate(std::size_t bytes) override;
  bool reduces(MemoryKind kind) const override { return size() == 1 || kind != MemoryKind::device; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  // See NodeAllReduce. For tasks whose first replica communicates with other tasks.
  void reduce_to_first(void* data, std::size_t count, DType type, Lane& lane,
                       std::string_view label);
  void copy_from_first(void* data, std::size_t bytes, Lane& lane, std::string_view label);
  void broadcast(void* data, std::size_t bytes, int root) override;
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void barrier() override { reduction_.barrier("barrier"); }
  void abort(std::string_view) noexcept override { reduction_.abort(); }

 private:
  void show(void* data) {
    shared_->parts[static_cast<std::size_t>(rank())] = static_cast<std::byte*>(data);
  }

  std::shared_ptr<ThreadTeam> shared_;
  NodeAllReduce reduction_;
};

// One communicator of type T(shared, rank, deadlines, more...) for each replica of this process.
template <typename T, typename... More>
std::vector<std::unique_ptr<Communicator>> connect_threads(const Membership& membership,
                                                           const More&... more) {
  auto shared = std::make_shared<ThreadTeam>();
  shared->parts.resize(static_cast<std::size_t>(membership.replicas_here));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < membership.replicas_here; ++rank) {
    communicators.push_back(std::make_unique<T>(shared, rank, membership.deadlines, more...));
  }
  return communicators;
}

// No, with a cure, if this task has several replicas.
Support serves_one_replica_a_task(const Membership& membership, std::string_view backend);

// No, with a cure, if a launcher started more than one process.
Support serves_one_process(const Membership& membership, std::string_view backend);

}  // namespace paceline
