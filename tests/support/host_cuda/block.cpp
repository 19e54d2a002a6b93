#include "tests/support/host_cuda/block.h"

#include <cstdint>

namespace paceline::cuda {

void HostBlock::enter(unsigned low, unsigned high) {
  auto* block = reinterpret_cast<HostBlock*>((static_cast<std::uintptr_t>(high) << 32) | low);
  const unsigned mine = block->current_;
  (*block->thread_)(mine);
  block->fibers_[mine].done = true;
}

// Apart, because getcontext() may return twice as far as the compiler knows.
__attribute__((noinline)) void HostBlock::start(Fiber& fiber) {
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &main_;
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&HostBlock::enter), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
}

void HostBlock::run(unsigned threads, const std::function<void(unsigned)>& thread) {
  thread_ = &thread;
  if (fibers_.size() < threads) fibers_.resize(threads);
  for (unsigned t = 0; t < threads; ++t) {
    fibers_[t].done = false;
    fibers_[t].stack.resize(kStackBytes);
    start(fibers_[t]);
  }
  for (bool any = true; any;) {
    any = false;
    for (current_ = 0; current_ < threads; ++current_) {
      if (fibers_[current_].done) continue;
      swapcontext(&main_, &fibers_[current_].context);
      any = true;
    }
  }
}

void HostBlock::sync() {
  swapcontext(&fibers_[current_].context, &main_);
}

}  // namespace paceline::cuda
