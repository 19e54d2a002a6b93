// A rank's control socket: its second connection to the bootstrap store, which represents its life.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/rendezvous/join.h"

namespace paceline {

// One background thread. If a rank's process or host dies, the others learn of it: immediately by
// end-of-file, or within about 20 s if a host stops responding.
class LivenessConnection {
 public:
  // The lost rank (-1: the starter, which hosts the store), and one line that names it: "rank 3 on
  // n07 is gone", "rank 3: out of memory".
  using OnLost = std::function<void(int rank, const std::string& why)>;

  // `on_lost` is called at most once, on the background thread. It must neither throw nor destroy
  // this object. Throws as join_store().
  LivenessConnection(const BootstrapAddress& where, int rank, double seconds, OnLost on_lost);
  // Leaves. Call abort() first if the process ends for any reason except success.
  ~LivenessConnection();
  LivenessConnection(const LivenessConnection&) = delete;
  LivenessConnection& operator=(const LivenessConnection&) = delete;

  // Announces a clean end and joins the thread. Do not call it from `on_lost`.
  void leave() noexcept;
  // Reports "rank R: why" to the others. From any thread, at any time. Does nothing after leave().
  void abort(const std::string& why) noexcept;

  // This rank's progress, in a count that grows equally on all ranks (collectives, steps).
  void note_progress(std::uint64_t number) noexcept { progress_.store(number); }
  // The ranks with the smallest progress, and those that did not answer within a second, in order.
  // If all answers are equal, only the latter; if all ranks answered equally, all ranks. Excludes
  // ranks that left. Empty if the store does not answer within three seconds. Do not call it from
  // `on_lost`.
  std::vector<int> late_ranks();

 private:
  void run() noexcept;
  bool listen();
  bool handle_all();
  bool handle(const Message& message);
  void lost(int rank, const std::string& why) noexcept;
  bool send(const Message& message) noexcept;

  Joined joined_;
  int rank_, ranks_, host_rank_;
  OnLost on_lost_;
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<bool> leaving_{false};
  WakeUp wake_up_;

  std::mutex send_mutex_;
  bool ended_ = false;  // goodbye or abort was sent

  std::mutex asking_;  // one caller at a time
  std::mutex late_mutex_;
  std::condition_variable late_changed_;
  std::uint64_t late_ticket_ = 0;
  bool late_complete_ = true, over_ = false;
  std::vector<int> late_;

  std::thread thread_;
};

}  // namespace paceline
