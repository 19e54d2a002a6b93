// Where the work of one stream runs. ThreadSanitizer takes it for a thread of its own, whichever
// thread carries it: what orders two pieces of work for it is only what orders them on a GPU.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/support/host_cuda/block.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#include <ucontext.h>
#endif

namespace paceline::cuda {

// Everything before happens_before(token) is before what follows happens_after(token).
inline void happens_before([[maybe_unused]] void* token) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(token);
#endif
}
inline void happens_after([[maybe_unused]] void* token) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(token);
#endif
}

// Does not throw.
struct HostTask {
  virtual ~HostTask() = default;
  std::function<void(HostBlock&)> work;
};

class HostPlace {
 public:
  HostPlace();
  ~HostPlace();
  HostPlace(const HostPlace&) = delete;
  HostPlace& operator=(const HostPlace&) = delete;

  // Runs it after happens_before(token), and lets go of it. That it is done says nothing of what
  // the caller may look at.
  void run(std::unique_ptr<HostTask> task, void* token);

 private:
  HostBlock block_;
#ifdef __SANITIZE_THREAD__
  static constexpr std::size_t kStackBytes = 256 << 10;
  static void enter(unsigned low, unsigned high);
  void* fiber_;
  void* carrier_ = nullptr;
  HostTask* task_ = nullptr;
  void* token_ = nullptr;
  ucontext_t here_{}, there_{};
  std::vector<char> stack_;
#endif
};

}  // namespace paceline::cuda
