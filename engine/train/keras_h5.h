// Weights that Keras saved as HDF5: a weights file ("notop") or a whole model.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/train/safetensors.h"

namespace paceline {

// Every data set of floating-point numbers, named by its path without the leading slash; what the
// optimizer left in a whole model is skipped, and links to other files are never followed. Throws
// input naming the file. Where the build has no HDF5: an error that says so.
std::vector<NamedTensor> read_keras_h5(const std::filesystem::path& file);

}  // namespace paceline
