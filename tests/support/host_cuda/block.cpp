#include "tests/support/host_cuda/block.h"

#include <cstdint>

// AddressSanitizer must be told of stacks that are changed by hand.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PACELINE_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PACELINE_ASAN
#endif
#ifdef PACELINE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace paceline::cuda {

namespace {

void leave_stack([[maybe_unused]] void** fake, [[maybe_unused]] const void* next,
                 [[maybe_unused]] std::size_t bytes) {
#ifdef PACELINE_ASAN
  __sanitizer_start_switch_fiber(fake, next, bytes);
#endif
}

void come_to_stack([[maybe_unused]] void* fake, [[maybe_unused]] const void** before,
                   [[maybe_unused]] std::size_t* bytes) {
#ifdef PACELINE_ASAN
  __sanitizer_finish_switch_fiber(fake, before, bytes);
#endif
}

}  // namespace

void HostBlock::enter(unsigned low, unsigned high) {
  auto* block = reinterpret_cast<HostBlock*>((static_cast<std::uintptr_t>(high) << 32) | low);
  come_to_stack(nullptr, &block->main_stack_, &block->main_stack_bytes_);
  const unsigned mine = block->current_;
  (*block->thread_)(mine);
  block->fibers_[mine].done = true;
  leave_stack(nullptr, block->main_stack_, block->main_stack_bytes_);
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

void HostBlock::switch_to_fiber(Fiber& fiber) {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, fiber.stack.data(), kStackBytes);
  swapcontext(&main_, &fiber.context);
  come_to_stack(fake_stack, nullptr, nullptr);
}

void HostBlock::switch_to_main(Fiber& fiber) {
  leave_stack(&fiber.fake_stack, main_stack_, main_stack_bytes_);
  swapcontext(&fiber.context, &main_);
  come_to_stack(fiber.fake_stack, &main_stack_, &main_stack_bytes_);
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
      switch_to_fiber(fibers_[current_]);
      any = true;
    }
  }
}

void HostBlock::sync() {
  switch_to_main(fibers_[current_]);
}

}  // namespace paceline::cuda
