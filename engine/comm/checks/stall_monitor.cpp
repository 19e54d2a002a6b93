#include "engine/comm/checks/stall_monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "engine/comm/rendezvous/liveness.h"
#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/lane.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kLastWordsSeconds = 5;
constexpr char kSee[] = "see what it was doing: in a driver, in a file system that hangs";

double poll_interval(const StallMonitor::Setup& setup) {
  const Deadlines& deadlines = setup.deadlines;
  const double shortest =
      std::min({deadlines.warn_seconds, deadlines.abort_seconds, setup.grace_seconds});
  return std::clamp(shortest / 8, 0.02, 1.0);
}

bool is_own(const Error& error) {
  return error.kind() != ErrorKind::peer_lost;
}

}  // namespace

StallMonitor::StallMonitor(Setup setup)
    : setup_(std::move(setup)), looked_at_(now_seconds()), thread_([this] { run(); }) {}

StallMonitor::~StallMonitor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StallMonitor::watch(std::vector<std::shared_ptr<FlightRing>> rings) {
  const std::lock_guard lock(mutex_);
  rings_ = std::move(rings);
}

void StallMonitor::settle_by(std::shared_ptr<const std::atomic<bool>> settled) {
  const std::lock_guard lock(mutex_);
  setup_.deadlines.settled = std::move(settled);
}

void StallMonitor::set_control(LivenessConnection* control) {
  const std::lock_guard lock(control_mutex_);
  control_ = control;
}

void StallMonitor::expect_end(const Error& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (ends_at_ == 0) ends_at_ = now_seconds() + setup_.grace_seconds;
  try {
    if (!why_ || (!is_own(*why_) && is_own(why))) why_ = why;
  } catch (const std::exception&) {
    // Without memory for the words the end comes without them.
  }
}

StallMonitor::Call::Call(StallMonitor* stall_monitor, std::string_view label, std::string_view cure)
    : stall_monitor_(stall_monitor) {
  if (stall_monitor_ == nullptr) return;
  const std::lock_guard lock(stall_monitor_->mutex_);
  stall_monitor_->call_since_ = now_seconds();
  stall_monitor_->call_label_ = label;
  stall_monitor_->call_cure_ = cure;
}

StallMonitor::Call::~Call() {
  if (stall_monitor_ == nullptr) return;
  const std::lock_guard lock(stall_monitor_->mutex_);
  stall_monitor_->call_since_ = 0;
}

void StallMonitor::run() noexcept {
  name_this_thread("stalls");
  block_signals();
  const auto interval = std::chrono::duration<double>(poll_interval(setup_));
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return stop_; })) {
    lock.unlock();
    try {
      look();
    } catch (const std::exception&) {
      // Without memory for words; the next look may have some.
    }
    lock.lock();
  }
}

// Where this process itself was stopped for a while, others did not keep it waiting: waits are
// judged anew at the next look.
void StallMonitor::look() {
  const auto wait = longest_wait();
  const double now = now_seconds();
  const bool was_stopped = now - looked_at_ > 1 + 4 * poll_interval(setup_);
  looked_at_ = now;
  if (was_stopped) return;
  std::unique_lock lock(mutex_);
  const bool over = ends_at_ != 0 && now > ends_at_;
  const Error why = why_.value_or(Error(ErrorKind::internal, "this rank could not end"));
  const double limit = setup_.deadlines.limit_seconds() + setup_.grace_seconds;
  lock.unlock();
  if (over) return end_process(why);
  if (!wait) return warned_of_.clear();
  if (wait->seconds > limit) {
    Error error(
        ErrorKind::stall,
        fmt::format("has waited {} and could not end by itself", format_seconds(wait->seconds)),
        wait->where, wait->cure);
    return end_process(error.on_rank(wait->rank));
  }
  if (wait->seconds > setup_.deadlines.warn_seconds) warn(*wait);
}

std::optional<StallMonitor::Wait> StallMonitor::longest_wait() {
  const std::lock_guard lock(mutex_);
  std::optional<Wait> longest;
  if (call_since_ != 0) {
    longest = {now_seconds() - call_since_, setup_.rank, call_label_, call_cure_};
  }
  for (const auto& ring : rings_) {
    ring->beat();
    const auto wait = ring->wait();
    if (!wait || (longest && wait->seconds <= longest->seconds)) continue;
    const std::string where = wait->step == 0 ? fmt::format("{} before the first step", wait->label)
                                              : fmt::format("step {}, {}", wait->step, wait->label);
    longest = {wait->seconds, ring->rank(), where, kSee};
  }
  return longest;
}

// Once a wait. Every rank that waits could say the same: the first of them does.
void StallMonitor::warn(const Wait& wait) {
  if (warned_of_ == wait.where) return;
  warned_of_ = wait.where;
  int first_waiting = 0;
  const std::string late = late_ranks(wait.rank, first_waiting);
  const std::string line = fmt::format(
      "rank {} has waited {} at {}{}{}", wait.rank, format_seconds(wait.seconds), wait.where,
      late.empty() ? "" : " for " + late, wait.cure == kSee ? "" : "; " + wait.cure);
  if (setup_.rank == first_waiting) {
    log::alert(line);
  } else {
    log::warning("{}", line);
  }
}

// Empty where nobody is known to be late. `first_waiting`: the least rank that is not.
std::string StallMonitor::late_ranks(int waiting, int& first_waiting) {
  std::unique_lock lock(mutex_);
  std::vector<int> late;
  std::uint64_t most = 0;
  for (const auto& ring : rings_) most = std::max(most, ring->entered());
  for (const auto& ring : rings_) {
    if (ring->entered() < most) late.push_back(ring->rank());
  }
  lock.unlock();
  first_waiting = setup_.rank;
  if (std::find(late.begin(), late.end(), waiting) != late.end()) return "";  // for itself
  if (!late.empty()) return ranks_text(late);
  const std::lock_guard control_lock(control_mutex_);
  if (control_ == nullptr) return "";
  for (const int task : control_->late_ranks()) late.push_back(task * setup_.replicas_here);
  std::sort(late.begin(), late.end());
  if (std::binary_search(late.begin(), late.end(), setup_.rank)) return "";  // equally far: all
  for (first_waiting = 0; std::binary_search(late.begin(), late.end(), first_waiting);) {
    first_waiting += setup_.replicas_here;
  }
  return late.empty() ? "" : ranks_text(late);
}

void StallMonitor::end_process(const Error& why) {
  const auto said = std::make_shared<std::promise<void>>();
  std::thread([said, why, say = setup_.on_fatal_error] {
    if (say) say(why);
    said->set_value();
  }).detach();
  said->get_future().wait_for(std::chrono::duration<double>(kLastWordsSeconds));
  if (!setup_.exit) _exit(exit_code(why.kind()));
  setup_.exit(exit_code(why.kind()));
  const std::lock_guard lock(mutex_);
  stop_ = true;
}

}  // namespace paceline
