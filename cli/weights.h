// The parameter `weights`: which file training starts from.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// "none": empty; "imagenet": the file in the folder of the data set resnet50-imagenet; else the
// file itself. Throws input where it is not there, for imagenet with both ways out.
std::filesystem::path weights_file(const std::string& parameter);

// Of the file's bytes, 16 hexadecimal digits.
std::string hash_of_file(const std::filesystem::path& file);

}  // namespace paceline
