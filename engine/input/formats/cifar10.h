// CIFAR-10's binary version: records of a label byte and 3 x 32 x 32 bytes, planes of red, green
// and blue (cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

// This folder, or cifar-10-batches-bin in it. Empty if neither has batches.
std::filesystem::path find_cifar10(const std::filesystem::path& folder);

// data_batch_1.bin to data_batch_5.bin are "train", which is absent if one is missing;
// test_batch.bin is "test". read() returns pixels. Throws input if there is a sixth batch.
ImageSet open_cifar10(const std::filesystem::path& folder, const ReadOptions& options);

}  // namespace paceline
