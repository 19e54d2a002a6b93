// Reads weights that Keras saved as HDF5: a weights file ("notop") or a whole model.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/train/safetensors.h"

namespace paceline {

// All floating-point data sets, named by their path without the leading slash. Skips the optimizer
// state of whole models, and never follows links to other files. Throws input naming the file, also
// if the build has no HDF5.
std::vector<NamedTensor> read_keras_h5(const std::filesystem::path& file);

}  // namespace paceline
