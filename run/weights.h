// Finds the file of initial weights from the parameter `weights`.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// "none": empty; "imagenet": the file in the folder of data set resnet50-imagenet; a checkpoint's
// folder: its file of parameters; else the file itself. Throws input if it does not exist; for
// imagenet, the error says how to get it.
std::filesystem::path weights_file(const std::string& parameter);

}  // namespace paceline
