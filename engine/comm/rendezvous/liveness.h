// A rank's control socket: its second connection to the bootstrap store, which stands for its life.
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

// One background thread. Where a rank's process or host dies, the others hear of it: at once by
// end-of-file, within about 20 s where a host falls silent.
class LivenessConnection {
 public:
  // The rank that was lost (-1: the starter, which hosts the store) and one line that names it:
  // "rank 3 on n07 is gone", "rank 3: out of memory".
  using OnLost = std::function<void(int rank, const std::string& why)>;

  // `on_lost` is called once at most, on the background thread; it must neither throw nor destroy
  // this. Errors as join_store's.
  LivenessConnection(const BootstrapAddress& where, int rank, double seconds, OnLost on_lost);
  // Leaves. Where the process ends for another reason than success, abort() comes first.
  ~LivenessConnection();
  LivenessConnection(const LivenessConnection&) = delete;
  LivenessConnection& operator=(const LivenessConnection&) = delete;

  // Says goodbye and joins: a clean end. Not from `on_lost`.
  void leave() noexcept;
  // The others hear "rank R: why". From any thread, any time. Does nothing after leave().
  void abort(const std::string& why) noexcept;

  // How far this rank is, in any count that grows alike on all ranks: collectives, steps.
  void note_progress(std::uint64_t number) noexcept { progress_.store(number); }
  // The ranks whose number is smallest, and those that did not answer within a second, in order;
  // the latter alone where all that answered are equally far, and all ranks where all did and are.
  // Ranks that left are not among them. Empty if the store itself does not answer within three
  // seconds. Not from `on_lost`.
  std::vector<int> late_ranks();

 private:
  void run() noexcept;
  bool listen();
  bool handle_all();
  bool handle(const Message& message);
  void lost(int rank, const std::string& why) noexcept;
  bool send(const Message& message) noexcept;

  Joined joined_;
  int rank_, host_rank_;
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
  bool late_complete_ = false, over_ = false;
  std::vector<int> late_;

  std::thread thread_;
};

}  // namespace paceline
