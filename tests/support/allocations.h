// Counts calls of operator new. Include in one source of a test program: it replaces the operators.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace paceline {

inline std::atomic<long> allocations{0};

inline void* counted_allocation(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  if (void* data = std::aligned_alloc(alignment, bytes ? bytes : alignment)) return data;
  throw std::bad_alloc();
}

}  // namespace paceline

// With sanitizers GCC 12 inlines the one and not the other, and takes them for no pair.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t bytes) {
  return paceline::counted_allocation(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return paceline::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return paceline::counted_allocation(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}
