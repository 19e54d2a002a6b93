#include "tests/support/host_cuda/place.h"

#include <cstdint>

namespace paceline::cuda {

#ifdef __SANITIZE_THREAD__

HostPlace::HostPlace() : fiber_(__tsan_create_fiber(0)), stack_(kStackBytes) {
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  getcontext(&here_);
  here_.uc_stack.ss_sp = stack_.data();
  here_.uc_stack.ss_size = stack_.size();
  here_.uc_link = nullptr;
  makecontext(&here_, reinterpret_cast<void (*)()>(&HostPlace::enter), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
}

HostPlace::~HostPlace() {
  __tsan_destroy_fiber(fiber_);
}

// Both change what the sanitizer takes for the thread, so it must not look at what they touch.
__attribute__((no_sanitize_thread)) void HostPlace::enter(unsigned low, unsigned high) {
  auto* place = reinterpret_cast<HostPlace*>((static_cast<std::uintptr_t>(high) << 32) | low);
  while (true) {
    happens_after(place->token_);
    place->task_->work(place->block_);
    delete place->task_;
    __tsan_switch_to_fiber(place->carrier_, __tsan_switch_to_fiber_no_sync);
    swapcontext(&place->here_, &place->there_);
  }
}

__attribute__((no_sanitize_thread)) void HostPlace::run(std::unique_ptr<HostTask> task,
                                                        void* token) {
  task_ = task.release();
  token_ = token;
  carrier_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
  swapcontext(&there_, &here_);
}

#else

HostPlace::HostPlace() = default;
HostPlace::~HostPlace() = default;

void HostPlace::run(std::unique_ptr<HostTask> task, void*) {
  task->work(block_);
}

#endif

}  // namespace paceline::cuda
