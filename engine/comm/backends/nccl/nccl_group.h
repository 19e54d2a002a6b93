// The communicators (ncclComm_t) of this process's replicas in one NCCL world.
//
// Communicators are non-blocking unless requested otherwise: calls return at once, and the caller
// polls until the state is no longer "in progress". So nothing waits inside the library. One thread
// polls for asynchronous NCCL errors, checks whether the host has waited too long for a stream, and
// is the only one that aborts. It never uses a stream under capture, so graphs can be captured
// concurrently.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/comm/backends/nccl/library.h"
#include "engine/core/error.h"

namespace paceline::nccl {

class NcclGroup : public std::enable_shared_from_this<NcclGroup> {
 public:
  struct Setup {
    std::shared_ptr<const Library> library;
    Membership membership;  // of this process; gpus is not null
    ncclUniqueId id{};      // equal on all tasks
    bool blocking = false;  // if true, joining has no deadline
    // Throws if another task is known to be gone. Called while waiting for others to join.
    std::function<void()> check_others;
    // What NCCL warned of lately, for errors. May be empty.
    std::function<std::string()> warnings = {};
    Quirks quirks = {};
    std::vector<int> names = {};  // of the ranks, in errors; empty: as they are
  };
  // Joins. Collective over all tasks. Throws stall past the deadline, with a cure.
  explicit NcclGroup(Setup setup);
  // Waits a few seconds for the other ranks to leave.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int size() const { return size_; }
  const Quirks& quirks() const { return quirks_; }

  // Zeroed memory from NCCL, registered for zero-copy sums where the version can. It keeps this
  // object alive.
  Memory allocate(int replica, std::size_t bytes);
  // Queues the sum on `stream` (cudaStream_t).
  void all_reduce(int replica, void* data, std::size_t count, DType type, void* stream,
                  std::string_view label);
  // Call before replaying a captured step that contains a sum.
  void note_replay(int replica);
  void throw_if_ended();
  void begin_wait(int replica, std::string_view label) noexcept;
  void end_wait(int replica) noexcept;
  void abort(std::string_view why) noexcept;

 private:
  struct Member {
    int rank = 0;               // among those that sum
    int name = 0;               // in the world
    ncclComm_t comm = nullptr;  // null once aborted
    std::mutex mutex;           // protects comm and all calls on it except its abort
    std::mutex aborting;        // held during the abort; lock it before `mutex`
    std::atomic<std::uint64_t> progress{0};
    // State of the host's wait, protected by mutex_ below.
    double waits_since = 0;  // 0: not waiting
    std::string_view waits_at = {};
    bool warned = false;
  };

  void join(const Setup& setup);
  void await_join(const std::function<void()>& check_others);
  // Waits until the last call on the member, which returned `result`, is no longer in progress.
  // Throws its error.
  void settle(Member& member, ncclResult_t result, std::string_view label);
  void release(Member& member, void* data, void* handle) noexcept;
  void note_progress(Member& member) noexcept;

  void watch(const std::stop_token& stop) noexcept;
  void look_for_errors();
  void look_for_stalls();
  std::string late_ranks() const;
  void end(const Error& error) noexcept;  // keeps the first error
  [[noreturn]] void throw_why();
  void await_call(Member& member) noexcept;  // for a short time only
  void abort_members() noexcept;
  void finalize_members() noexcept;

  ncclResult_t poll_state(const Member& member) const;
  Error make_error(const Member& member, ncclResult_t result, std::string_view label) const;
  Member& member_at(int replica) { return *members_[static_cast<std::size_t>(replica)]; }

  Quirks quirks_;
  std::function<std::string()> warnings_;
  std::shared_ptr<const Library> library_;
  Membership membership_;
  ReplicaGpus gpus_;
  int size_;
  std::vector<std::unique_ptr<Member>> members_;

  std::atomic<bool> ended_{false};
  std::mutex mutex_;  // protects the members below
  std::condition_variable_any changed_;
  std::optional<Error> why_;
  std::jthread watcher_;
};

}  // namespace paceline::nccl
