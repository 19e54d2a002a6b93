// An HDF5 file of weights from an untrusted place. HDF5 itself parses it: see README.md.
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/train/weights.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  folder.fill({"w.h5"}, {{reinterpret_cast<const char*>(data), size}});
  try {
    const auto tensors = paceline::read_keras_h5(folder.path() / "w.h5");
    for (const paceline::NamedTensor& tensor : tensors) {
      std::size_t elements = 1;
      for (const int extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
      if (elements != tensor.values.size()) std::abort();
    }
  } catch (const paceline::Error&) {
  }
  return 0;
}
