// IDX bytes, and gzip data around them, from an untrusted file.
#include <string_view>

#include "engine/core/error.h"
#include "engine/input/formats/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kLimit = 1 << 20;
  try {
    paceline::parse_idx(bytes, "fuzz");
  } catch (const paceline::Error&) {
  }
  try {
    paceline::parse_idx(paceline::gunzip(bytes, "fuzz.gz", kLimit), "fuzz.gz");
  } catch (const paceline::Error&) {
  }
  return 0;
}
