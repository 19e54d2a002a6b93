#include "engine/comm/checks/call_timeout.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <utility>
#include <vector>

#include "engine/comm/rendezvous/liveness.h"
#include "engine/core/clock.h"
#include "engine/core/text.h"

namespace paceline {

CallTimeout::CallTimeout(const Deadlines& deadlines,
                         std::function<void(const std::string&)> expired)
    : deadlines_(deadlines),
      expired_(std::move(expired)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

// Calls do not wake the thread, which looks now and then: that keeps them cheap.
void CallTimeout::watch(const std::stop_token& stop) {
  const auto interval = std::chrono::duration<double>(deadlines_.abort_seconds / 20);
  const auto stops = [&stop] { return stop.stop_requested(); };
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex_);
  while (!stopped.wait_for(lock, stop, interval, stops)) {
    if (since_ == 0 || now_seconds() - since_ < deadlines_.limit_seconds()) continue;
    const std::string label(label_);
    lock.unlock();
    expired_(label);
    return;
  }
}

CallTimeout::Call::Call(CallTimeout& call_timeout, std::string_view label)
    : call_timeout_(call_timeout) {
  std::lock_guard lock(call_timeout_.mutex_);
  call_timeout_.since_ = now_seconds();
  call_timeout_.label_ = label;
}

CallTimeout::Call::~Call() {
  std::lock_guard lock(call_timeout_.mutex_);
  call_timeout_.since_ = 0;
}

Error timeout_error(std::string_view call, const Deadlines& deadlines, LivenessConnection* control,
                    std::string_view label) {
  std::string what =
      fmt::format("{} did not return within {:g} s", call, deadlines.limit_seconds());
  if (control != nullptr) {
    const std::vector<int> late = control->late_ranks();
    if (!late.empty()) {
      what += ": " + ranks_text(late) + " did not come";
    }
  }
  return Error(ErrorKind::stall, what, std::string(label), "see what the other ranks were doing");
}

}  // namespace paceline
