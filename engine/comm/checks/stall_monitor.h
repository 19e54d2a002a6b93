// Warns of long waits, and ends a process that should have ended. The last resort for a thread that
// is stuck in a driver or library call.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/error.h"
#include "engine/failure/flight_ring.h"

namespace paceline {

class LivenessConnection;

// One background thread, which reads the flight rings of this process's replicas periodically. It
// adds no cost to a step.
//
// Past deadlines.warn_seconds, it warns with the ranks that are late, as far as the control socket
// knows. It ends the process in two cases: past the deadline plus a grace period, when the waiting
// thread should have thrown; and a grace period after an announced end. It then calls
// on_fatal_error and _exit with the error's code. It takes no lock that a waiting thread may hold,
// and abandons an on_fatal_error that takes more than a few seconds.
class StallMonitor {
 public:
  static constexpr double kGraceSeconds = 15;  // more than backends add to the deadline

  struct Setup {
    Deadlines deadlines;
    int rank = 0;           // of this process's first replica
    int replicas_here = 1;  // late tasks are named by their first replica
    std::function<void(const Error&)> on_fatal_error = {};
    double grace_seconds = kGraceSeconds;
    std::function<void(int code)> exit = {};  // for tests; empty: _exit
  };
  explicit StallMonitor(Setup setup);
  ~StallMonitor();
  StallMonitor(const StallMonitor&) = delete;
  StallMonitor& operator=(const StallMonitor&) = delete;

  void watch(std::vector<std::shared_ptr<FlightRing>> rings);
  // See Deadlines::settled.
  void settle_by(std::shared_ptr<const std::atomic<bool>> settled);
  // Sets the connection that knows which ranks are late, or null. Returns after calls on the old
  // one have ended.
  void set_control(LivenessConnection* control);

  // Announces that this process is about to end with this error. The first error of its own counts,
  // and takes precedence over errors caused by other ranks. From any thread.
  void expect_end(const Error& why) noexcept;

  // Watches a call that is not a collective but may block: "connecting by NCCL". `cure` says what
  // to check. Does nothing if `stall_monitor` is null. One at a time.
  class Call {
   public:
    Call(StallMonitor* stall_monitor, std::string_view label, std::string_view cure);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    StallMonitor* stall_monitor_;
  };

 private:
  struct Wait {
    double seconds = 0;
    int rank = 0;
    std::string where;  // "step 417, bucket 0"
    std::string cure;
  };

  void run() noexcept;
  void look();
  std::optional<Wait> longest_wait();
  void warn(const Wait& wait);
  std::string late_ranks(int waiting, int& first_waiting);
  void end_process(const Error& why);

  Setup setup_;
  std::mutex mutex_;  // protects the members below; never held during a wait for others
  std::condition_variable changed_;
  std::vector<std::shared_ptr<FlightRing>> rings_;
  std::optional<Error> why_;
  double ends_at_ = 0;  // as now_seconds(); 0: no end announced
  double call_since_ = 0;
  std::string call_label_, call_cure_;
  bool stop_ = false;

  std::mutex control_mutex_;
  LivenessConnection* control_ = nullptr;
  std::string warned_of_;  // these are used only by the monitor's thread
  double looked_at_;
  std::thread thread_;
};

}  // namespace paceline
