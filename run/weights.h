// The parameter `weights`: which file training starts from.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// "none": empty; "imagenet": the file in the folder of the data set resnet50-imagenet; of a
// checkpoint's folder the file of parameters; else the file itself. Throws input where it is not
// there, for imagenet with both ways out.
std::filesystem::path weights_file(const std::string& parameter);

}  // namespace paceline
