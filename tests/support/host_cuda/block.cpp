#include "tests/support/host_cuda/block.h"

#include <cstdint>
#include <memory>
#include <stdexcept>

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

// ThreadSanitizer counts calls and returns, and from here and change() some never return.
__attribute__((no_sanitize("thread"))) void HostBlock::enter(unsigned low, unsigned high) {
  auto* block = reinterpret_cast<HostBlock*>((static_cast<std::uintptr_t>(high) << 32) | low);
  come_to_stack(nullptr, &block->main_stack_, &block->main_stack_bytes_);
  const unsigned mine = block->current_;
  (*block->thread_)(mine);
  block->fibers_[mine].done = true;
  leave_stack(nullptr, block->main_stack_, block->main_stack_bytes_);
  change(block->fibers_[mine].place, block->main_);  // and never back
}

#if defined(PACELINE_ASAN) || defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"))) void HostBlock::change(Place& from, Place& to) {
  swapcontext(&from.context, &to.context);
}
#else
// swapcontext() asks the kernel for the signal mask each time, which took three quarters of these
// tests' time; jumps between stacks that are there do not.
void HostBlock::change(Place& from, Place& to) {
  if (_setjmp(from.jump) != 0) return;
  if (to.begun) _longjmp(to.jump, 1);
  to.begun = true;
  setcontext(&to.context);
}
#endif

// Apart, because getcontext() may return twice as far as the compiler knows.
__attribute__((noinline)) void HostBlock::start(Fiber& fiber) {
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  fiber.done = false;
  fiber.stack.resize(kStackBytes);
  fiber.place.begun = false;
  ucontext_t& context = fiber.place.context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.data();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, reinterpret_cast<void (*)()>(&HostBlock::enter), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
}

void HostBlock::switch_to_fiber(Fiber& fiber) {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, fiber.stack.data(), kStackBytes);
  change(main_, fiber.place);
  come_to_stack(fake_stack, nullptr, nullptr);
}

void HostBlock::switch_to_main(Fiber& fiber) {
  leave_stack(&fiber.fake_stack, main_stack_, main_stack_bytes_);
  change(fiber.place, main_);
  come_to_stack(fiber.fake_stack, &main_stack_, &main_stack_bytes_);
}

void HostBlock::run(unsigned threads, const std::function<void(unsigned)>& thread) {
  thread_ = &thread;
  main_.begun = true;
  if (fibers_.size() < threads) fibers_.resize(threads);
  current_ = 0;
  start(fibers_[0]);
  switch_to_fiber(fibers_[0]);
  if (fibers_[0].done) return run_straight(threads, thread);
  for (current_ = 1; current_ < threads; ++current_) {
    start(fibers_[current_]);
    switch_to_fiber(fibers_[current_]);
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

// Of a barrier either all threads of a block know or none, so where the first met none no other
// needs a stack of its own.
void HostBlock::run_straight(unsigned threads, const std::function<void(unsigned)>& thread) {
  straight_ = true;
  const std::unique_ptr<bool, void (*)(bool*)> over(&straight_, [](bool* flag) { *flag = false; });
  for (current_ = 1; current_ < threads; ++current_) thread(current_);
}

void HostBlock::sync() {
  if (straight_) throw std::logic_error("a thread waits for others that do not");
  switch_to_main(fibers_[current_]);
}

}  // namespace paceline::cuda
