// A NumPy archive from an untrusted file.
#include <string>

#include "engine/core/error.h"
#include "engine/input/formats/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const paceline::NpzFile npz(std::string(reinterpret_cast<const char*>(data), size), "fuzz.npz");
    for (const char* name : {"x_train", "y_train"}) npz.array(name);
  } catch (const paceline::Error&) {
  }
  return 0;
}
