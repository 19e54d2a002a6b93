// A weights file from an untrusted place.

#include "engine/core/error.h"
#include "engine/train/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    paceline::parse_safetensors({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const paceline::Error&) {
  }
  return 0;
}
