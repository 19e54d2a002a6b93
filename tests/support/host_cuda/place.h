// Where the work of one stream runs. ThreadSanitizer takes it for a thread of its own, whichever
// thread carries it: what orders two pieces of work for it is only what orders them on a GPU.
#pragma once

#include <functional>
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

class HostPlace {
 public:
  using Work = std::function<void(HostBlock&)>;

  HostPlace();
  ~HostPlace();
  HostPlace(const HostPlace&) = delete;
  HostPlace& operator=(const HostPlace&) = delete;

  // Runs work that does not throw. It comes after what it says that it comes after, and before what
  // the caller does next.
  void run(const Work& work);

 private:
  HostBlock block_;
#ifdef __SANITIZE_THREAD__
  static constexpr std::size_t kStackBytes = 256 << 10;
  static void enter(unsigned low, unsigned high);
  void* fiber_;
  void* carrier_ = nullptr;
  const Work* work_ = nullptr;
  ucontext_t here_{}, there_{};
  std::vector<char> stack_;
#endif
};

}  // namespace paceline::cuda
