#include "engine/comm/algorithms/hierarchical.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/comm/transport/mesh.h"

namespace paceline {

namespace {

class HierarchicalCommunicator final : public Communicator {
 public:
  HierarchicalCommunicator(std::shared_ptr<ThreadTeam> shared, int local_rank,
                           const Deadlines& deadlines, std::shared_ptr<Communicator> between)
      : inside_(shared, local_rank, deadlines, global_ranks(*shared, *between)),
        between_(std::move(between)) {}

  int rank() const override { return between_->rank() * inside_.size() + inside_.rank(); }
  int size() const override { return between_->size() * inside_.size(); }

  Memory allocate(std::size_t bytes) override {
    return leads() ? between_->allocate(bytes) : Memory();
  }

  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    if (between_->size() == 1) return inside_.all_reduce(data, count, type, lane, label);
    if (inside_.size() == 1) return between_->all_reduce(data, count, type, lane, label);
    inside_.reduce_to_first(data, count, type, lane, label);
    if (leads()) between_->all_reduce(data, count, type, lane, label);
    inside_.copy_from_first(data, count * size_of(type), lane, label);
  }

  void broadcast(void* data, std::size_t bytes, int root) override {
    const int task = root / inside_.size();
    if (task == between_->rank()) inside_.broadcast(data, bytes, root % inside_.size());
    if (leads()) between_->broadcast(data, bytes, task);
    inside_.broadcast(data, bytes, 0);
  }

  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    const auto here = static_cast<std::size_t>(inside_.size());
    std::vector<std::byte> task(here * bytes);
    inside_.all_gather(mine, bytes, task.data());
    if (leads()) between_->all_gather(task.data(), task.size(), all);
    inside_.broadcast(all, static_cast<std::size_t>(size()) * bytes, 0);
  }

  void barrier() override {
    inside_.barrier();
    if (leads()) between_->barrier();
    inside_.barrier();
  }

  Supervision& supervision() override { return between_->supervision(); }

  void abort(std::string_view why) noexcept override {
    inside_.abort(why);
    between_->abort(why);
  }

 private:
  static std::vector<int> global_ranks(const ThreadTeam& team, const Communicator& between) {
    std::vector<int> names(team.parts.size());
    std::iota(names.begin(), names.end(), between.rank() * static_cast<int>(names.size()));
    return names;
  }
  bool leads() const { return inside_.rank() == 0; }

  ThreadCommunicator inside_;
  std::shared_ptr<Communicator> between_;
};

class HierarchicalBackend final : public Backend {
 public:
  HierarchicalBackend(std::string_view inside, std::unique_ptr<Backend> between)
      : between_(std::move(between)), name_(fmt::format("{}/{}", inside, between_->name())) {}

  std::string_view name() const override { return name_; }

  Support serves(const Membership& membership) const override {
    return between_->serves(leader_membership(membership));
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    tasks_ = membership.process.size;
    auto leaders = between_->connect(leader_membership(membership));
    return connect_around(std::move(leaders.front()), membership);
  }

  std::string library() const override { return between_->library(); }

  std::string description() const override {
    if (tasks_ == 1) return "threads of one task, shared memory; nothing between tasks";
    return "threads inside a task; between tasks " + between_->description();
  }

 private:
  std::unique_ptr<Backend> between_;
  std::string name_;
  int tasks_ = 0;  // 0: not connected yet
};

}  // namespace

Membership leader_membership(Membership membership) {
  membership.ranks_a_task = membership.replicas_here;
  membership.replicas_here = 1;
  membership.deadlines = deadlines_of_leader(membership.deadlines);
  return membership;
}

Deadlines deadlines_of_leader(Deadlines deadlines) {
  deadlines.abort_seconds += kLeaderSeconds;
  deadlines.start_seconds += kLeaderSeconds;
  return deadlines;
}

std::vector<std::unique_ptr<Communicator>> connect_around(std::shared_ptr<Communicator> between,
                                                          const Membership& membership) {
  return connect_threads<HierarchicalCommunicator>(membership, between);
}

std::unique_ptr<Backend> make_hierarchical_backend(std::string_view inside,
                                                   std::unique_ptr<Backend> between) {
  return std::make_unique<HierarchicalBackend>(inside, std::move(between));
}

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadTeam> shared, int rank,
                                       const Deadlines& deadlines, std::vector<int> names)
    : shared_(std::move(shared)),
      reduction_(
          shared_->control, rank, static_cast<int>(shared_->parts.size()), deadlines,
          shared_->parts.size() <= std::thread::hardware_concurrency() ? kSpinMicroseconds : 0,
          std::move(names)) {}

// Blocks of one size lie side by side, their size apart.
Memory ThreadCommunicator::allocate(std::size_t bytes) {
  return size() == 1 ? Memory() : host_memory(bytes + kBetweenParts);
}

void ThreadCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                    std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    show(data);
    reduction_.all_reduce(shared_->parts, count, type, label);
  });
}

void ThreadCommunicator::reduce_to_first(void* data, std::size_t count, DType type, Lane& lane,
                                         std::string_view label) {
  lane.submit([this, data, count, type, label] {
    show(data);
    reduction_.reduce_to_first(shared_->parts, count, type, label);
  });
}

void ThreadCommunicator::copy_from_first(void* data, std::size_t bytes, Lane& lane,
                                         std::string_view label) {
  lane.submit([this, data, bytes, label] {
    show(data);
    reduction_.copy_from_first(shared_->parts, bytes, label);
  });
}

void ThreadCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  if (rank() == root) show(data);
  reduction_.barrier("broadcast");
  if (rank() != root) std::memcpy(data, shared_->parts[static_cast<std::size_t>(root)], bytes);
  reduction_.barrier("broadcast");
}

void ThreadCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  show(const_cast<void*>(mine));
  reduction_.barrier("all-gather");
  for (std::size_t r = 0; r < shared_->parts.size(); ++r) {
    std::memcpy(static_cast<std::byte*>(all) + r * bytes, shared_->parts[r], bytes);
  }
  reduction_.barrier("all-gather");
}

Support serves_one_replica_a_task(const Membership& membership, std::string_view backend) {
  if (membership.replicas_here == 1) return Support::yes();
  return Support::no(fmt::format(
      "backend {0} needs one task per replica, but this task has {1} replicas: start one "
      "task for each, or use mirrored/{0}",
      backend, membership.replicas_here));
}

Support serves_one_process(const Membership& membership, std::string_view backend) {
  if (membership.process.size == 1) return Support::yes();
  return Support::no(
      fmt::format("backend {} is one process, but {} were started ({}): start one, "
                  "or choose a backend between processes such as ring",
                  backend, membership.process.size, membership.process.evidence));
}

}  // namespace paceline
