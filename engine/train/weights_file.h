// Weights that others trained, from files: Keras' HDF5 and safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/train/weights_map.h"

namespace paceline {

// Every tensor of the file, whose format shows in its first bytes. Throws input naming the file:
// no weights file (and what it is instead), damaged, cut short, HDF5 where it was left out.
std::vector<NamedTensor> read_weights(const std::filesystem::path& file);

// Reads an HDF5 file in a child process, which a damaged one may break together with libhdf5;
// throws input for that, and what read_weights() throws. Other formats are ours to read: nothing is
// done. Before this process has threads (see run_isolated()).
void try_weights(const std::filesystem::path& file);

// Reads `file`, maps its tensors to the plan's parameters and running averages and writes them. A
// head that the file has not keeps the values it has: call initialise_parameters() first. Adds a
// line to `notes` for what was not taken as it stands in the file. Throws input as read_weights()
// and map_weights() do; nothing is written then.
void load_weights(Program& program, const Plan& plan, const std::filesystem::path& file,
                  std::vector<std::string>& notes);

}  // namespace paceline
