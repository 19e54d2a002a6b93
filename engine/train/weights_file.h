// Loads pretrained weights from files: Keras' HDF5 and safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/train/weights_map.h"

namespace paceline {

// All tensors of the file. Detects the format from its first bytes. Throws input naming the file:
// not a weights file (with a guess of the content), damaged, cut short, HDF5 without support for
// it.
std::vector<NamedTensor> read_weights(const std::filesystem::path& file);

// Reads an HDF5 file in a child process first, because libhdf5 may crash on damaged files. Throws
// input in that case, and whatever read_weights() throws. Does nothing for other formats. Call it
// before this process starts threads (see run_isolated()).
void try_weights(const std::filesystem::path& file);

// Reads `file`, maps its tensors to the plan's parameters and running averages, and sets them. If
// the file has no head, the head's values stay unchanged: call initialise_parameters() first. Adds
// a line to `notes` for everything that was not used as stored. Throws input as read_weights() and
// map_weights(), before changing anything.
void load_weights(Program& program, const Plan& plan, const std::filesystem::path& file,
                  std::vector<std::string>& notes);

}  // namespace paceline
