// Sees to it that a process that waits too long says so, and that one that should have ended does:
// the last resort, where a thread is stuck in a driver's call or a library's and nobody comes back.
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

// One background thread. It looks at the flight rings of this process's replicas now and then, so
// nothing here costs a step anything.
//
// Past deadlines.warn_seconds it names the ranks that are late, as far as the control socket knows.
// Past the deadline and a grace, in which whoever waits should have thrown, and past the grace once
// an end was announced, it leaves the last words and ends the process by _exit with the error's
// code. What it needs for that it has at hand: it takes no lock that others hold while they wait,
// and last words that do not come to an end within seconds are left unsaid.
class StallMonitor {
 public:
  static constexpr double kGraceSeconds = 15;  // more than backends add to the deadline

  struct Setup {
    Deadlines deadlines;
    int rank = 0;           // of this process's first replica
    int replicas_here = 1;  // late tasks are named by their first replica
    std::function<void(const Error&)> last_words = {};
    double grace_seconds = kGraceSeconds;
    std::function<void(int code)> exit = {};  // for tests; empty: _exit
  };
  explicit StallMonitor(Setup setup);
  ~StallMonitor();
  StallMonitor(const StallMonitor&) = delete;
  StallMonitor& operator=(const StallMonitor&) = delete;

  void watch(std::vector<std::shared_ptr<FlightRing>> rings);
  // As Deadlines::settled.
  void settle_by(std::shared_ptr<const std::atomic<bool>> settled);
  // Who knows which ranks are late; null: nobody any more. Returns once the former one is not
  // asked.
  void ask(LivenessConnection* control);

  // This process is about to end for this reason. The first own error is the one that counts, ahead
  // of errors of other ranks' making. From any thread.
  void expect_end(const Error& why) noexcept;

  // A call that is no collective, and may not return either: "connecting by NCCL". `cure` says what
  // to look at. On nobody's watch where `stall_monitor` is null. One at a time.
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
  std::mutex mutex_;  // of what follows; nobody waits for others while holding it
  std::condition_variable changed_;
  std::vector<std::shared_ptr<FlightRing>> rings_;
  std::optional<Error> why_;
  double ends_at_ = 0;  // by now_seconds(); 0: no end is announced
  double call_since_ = 0;
  std::string call_label_, call_cure_;
  bool stop_ = false;

  std::mutex control_mutex_;
  LivenessConnection* control_ = nullptr;
  std::string warned_of_;  // of the stall monitor's thread only, as what follows
  double looked_at_;
  std::thread thread_;
};

}  // namespace paceline
