#include "engine/core/memory.h"

#include <sys/mman.h>

#include <cstring>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

Memory host_memory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (rounded == 0) return {};
  void* data = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorKind::usage,
                format_bytes(static_cast<double>(rounded)) + " of memory cannot be allocated", "",
                "use a smaller batch or more memory");
  }
#ifdef MADV_HUGEPAGE
  madvise(data, rounded, MADV_HUGEPAGE);
#endif
  std::memset(data, 0, rounded);
  return {data, rounded, MemoryKind::host, [rounded](void* p) { munmap(p, rounded); }};
}

}  // namespace paceline
