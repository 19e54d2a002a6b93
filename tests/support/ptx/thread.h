// A thread of a running kernel, as instructions see it.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "tests/support/ptx/module.h"

namespace paceline::ptx {

// The memory that instructions address. Each returns where the bytes are; after a fault that is
// memory of no meaning, so that the kernel goes on.
class PtxMemory {
 public:
  enum class Access { read, write, add };

  virtual ~PtxMemory() = default;
  virtual void* global(PtxThread& t, const PtxInstruction& i, std::uint64_t at, std::size_t bytes,
                       Access access) = 0;
  virtual void* shared(PtxThread& t, const PtxInstruction& i, std::uint64_t at, std::size_t bytes,
                       Access access) = 0;
  virtual void* parameter(PtxThread& t, const PtxInstruction& i, std::uint64_t at,
                          std::size_t bytes) = 0;
  virtual void* local(PtxThread& t, const PtxInstruction& i, std::uint64_t at,
                      std::size_t bytes) = 0;
  virtual void unknown(PtxThread& t, const PtxInstruction& i) = 0;
};

struct PtxThread {
  std::uint64_t* slots;
  PtxMemory* memory;
  std::uint32_t next = 0;  // instruction
  std::uint32_t number = 0;
  bool begun = false, stops = false, done = false;

  template <typename T>
  T get(std::uint32_t slot) const {
    T value;
    if constexpr (sizeof(T) == 8) {
      value = std::bit_cast<T>(slots[slot]);
    } else if constexpr (sizeof(T) == 4) {
      value = std::bit_cast<T>(static_cast<std::uint32_t>(slots[slot]));
    } else {
      value = static_cast<T>(slots[slot]);
    }
    return value;
  }
  // Integers are extended to the whole slot, as a load into a wider register does.
  template <typename T>
  void set(std::uint32_t slot, T value) {
    if constexpr (std::is_integral_v<T>) {
      slots[slot] = static_cast<std::uint64_t>(value);
    } else if constexpr (sizeof(T) == 8) {
      slots[slot] = std::bit_cast<std::uint64_t>(value);
    } else {
      slots[slot] = std::bit_cast<std::uint32_t>(value);
    }
  }
};

}  // namespace paceline::ptx
