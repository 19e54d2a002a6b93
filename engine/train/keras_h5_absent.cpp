// For a build without HDF5.
#include "engine/core/error.h"
#include "engine/train/weights.h"

namespace paceline {

std::vector<NamedTensor> read_keras_h5(const std::filesystem::path& file) {
  throw input_error("this is an HDF5 file, and HDF5 was not found when this was built",
                    file.string(), "build with it (Debian: libhdf5-dev), or use safetensors");
}

}  // namespace paceline
