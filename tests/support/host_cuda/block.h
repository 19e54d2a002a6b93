// Runs the threads of a block in turn, each until it waits for the others.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <vector>

namespace paceline::cuda {

class HostBlock {
 public:
  // Calls thread(t) for each; within it, sync() returns when all have called it or are done.
  void run(unsigned threads, const std::function<void(unsigned)>& thread);
  void sync();

 private:
  static constexpr std::size_t kStackBytes = 64 << 10;
  static void enter(unsigned low, unsigned high);

  // Where a stack goes on: from its beginning by `context`, then by `jump`.
  struct Place {
    ucontext_t context{};
    jmp_buf jump{};
    bool begun = false;
  };
  static void change(Place& from, Place& to);

  struct Fiber {
    Place place;
    std::vector<char> stack;
    void* fake_stack = nullptr;  // AddressSanitizer's
    bool done = false;
  };
  void start(Fiber& fiber);
  void run_straight(unsigned threads, const std::function<void(unsigned)>& thread);
  void switch_to_fiber(Fiber& fiber);
  void switch_to_main(Fiber& fiber);

  std::vector<Fiber> fibers_;
  Place main_;
  const void* main_stack_ = nullptr;
  std::size_t main_stack_bytes_ = 0;
  unsigned current_ = 0;
  bool straight_ = false;
  const std::function<void(unsigned)>* thread_ = nullptr;
};

}  // namespace paceline::cuda
