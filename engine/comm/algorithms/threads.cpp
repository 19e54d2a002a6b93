#include "engine/comm/algorithms/threads.h"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "engine/comm/transport/shared_parts.h"

namespace paceline {

namespace {

double spin_for(std::size_t ranks) {
  return ranks <= std::thread::hardware_concurrency() ? kSpinMicroseconds : 0;
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadTeam> shared, int rank,
                                       const Deadlines& deadlines, std::vector<int> names)
    : shared_(std::move(shared)),
      reduction_(shared_->control, rank, static_cast<int>(shared_->parts.size()), deadlines,
                 spin_for(shared_->parts.size()), std::move(names)) {}

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
