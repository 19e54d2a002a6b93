// What tests of single kernels give to the emulated GPU.
#pragma once

#include <cstring>
#include <vector>

#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// Whole numbers, of which every sum here is exact.
inline std::vector<float> numbers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed) * 13) % 11) - 5;
  }
  return values;
}

// Values in memory of the device, which the test reads and writes as its own.
template <typename T>
class OnDevice {
 public:
  OnDevice(Runtime& runtime, const std::vector<T>& values)
      : memory_(runtime.device_memory(values.size() * sizeof(T))), count_(values.size()) {
    std::memcpy(memory_.data(), values.data(), memory_.bytes());
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> values() const { return {data(), data() + count_}; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  Memory memory_;
  std::size_t count_;
};

}  // namespace paceline::cuda
