// The communicators (ncclComm_t) that the replicas of this process have in one NCCL world; NCCL's
// own word for such a set.
//
// They are non-blocking, unless asked otherwise: every call returns at once, so that nothing waits
// inside the library, and whoever called asks for its state until it is no longer "in progress".
// One thread watches: it asks for errors that NCCL found by itself, sees whether the host has
// waited too long for a stream, and is the one that aborts. It never touches a stream that is
// captured, so graphs may be captured meanwhile.
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

class Clique : public std::enable_shared_from_this<Clique> {
 public:
  struct Setup {
    std::shared_ptr<const Library> library;
    Membership membership;  // of this process; gpus is not null
    ncclUniqueId id{};      // the same on all tasks
    bool blocking = false;  // then joining has no deadline
    // Throws where another task is known to be gone; asked while waiting for the others to join.
    std::function<void()> check_others;
  };
  // Joins: collective over all tasks. Throws stall past the deadline, with what to look at.
  explicit Clique(Setup setup);
  // Waits for the other ranks to leave, some seconds at most.
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;

  int size() const { return size_; }

  // The library's memory, registered for sums without a copy, zeroed. Keeps this alive.
  Memory allocate(int replica, std::size_t bytes);
  // Queues the sum on `stream` (cudaStream_t).
  void all_reduce(int replica, void* data, std::size_t count, DType type, void* stream,
                  std::string_view label);
  // A sum that was captured with a step is about to be queued again with it.
  void note_replay(int replica);
  void throw_if_ended();
  void begin_wait(int replica, std::string_view label) noexcept;
  void end_wait(int replica) noexcept;
  void abort(std::string_view why) noexcept;

 private:
  struct Member {
    int rank = 0;               // in the world
    ncclComm_t comm = nullptr;  // null once aborted
    std::mutex mutex;           // of comm, and of all calls on it but its abort
    std::mutex aborting;        // held while it is aborted; taken before mutex
    std::atomic<std::uint64_t> progress{0};
    // Of the host's wait, by mutex_ below.
    double waits_since = 0;  // 0: does not
    std::string_view waits_at = {};
    bool warned = false;
  };

  void join(const Setup& setup);
  void await_join(const std::function<void()>& check_others);
  // Throws what ended the last call on a member, which gave `result`, or returns once it is no
  // longer in progress.
  void settle(Member& member, ncclResult_t result, std::string_view label);
  void release(Member& member, void* data, void* handle) noexcept;
  void note_progress(Member& member) noexcept;

  void watch() noexcept;
  void look_for_errors();
  void look_for_stalls();
  std::string late_ranks() const;
  void end(const Error& error) noexcept;  // the first one stays
  [[noreturn]] void throw_why();
  void await_call(Member& member) noexcept;  // not long
  void abort_members() noexcept;
  void finalize_members() noexcept;

  ncclResult_t state_of(const Member& member) const;
  Error error_of(const Member& member, ncclResult_t result, std::string_view label) const;
  Member& member_of(int replica) { return *members_[static_cast<std::size_t>(replica)]; }

  std::shared_ptr<const Library> library_;
  Membership membership_;
  ReplicaGpus gpus_;
  int size_;
  std::vector<std::unique_ptr<Member>> members_;

  std::atomic<bool> ended_{false};
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::optional<Error> why_;
  bool stop_ = false;
  std::thread watcher_;
};

}  // namespace paceline::nccl
