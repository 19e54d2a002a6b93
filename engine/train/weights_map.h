// From the names and layouts of a weight file to ours.
//
// Canonical names and layouts are those of Keras' ResNet: "conv2_block1_1_conv/kernel" (rows,
// columns, in, out), ".../bias", "conv2_block1_1_bn/gamma", "beta", "moving_mean",
// "moving_variance", "dense/kernel" (in, out). A file may have
//  - Keras' names: "conv1_conv/conv1_conv/kernel:0", below "model_weights/" in a whole model;
//  - torchvision's, which are timm's: "layer1.0.conv1.weight" (out, in, rows, columns),
//    "layer1.0.downsample.1.running_mean", "fc.weight" (out, in), after "module." or not.
#pragma once

#include <string>
#include <vector>

#include "engine/train/safetensors.h"

namespace paceline {

struct WantedTensor {
  std::string name;        // canonical
  std::vector<int> shape;  // canonical
};

struct MappedWeights {
  // In the order and layout of those wanted; empty: initialise it afresh.
  std::vector<std::vector<float>> values;
  std::vector<std::string> notes;  // what was not taken as it stands
};

// A layer whose kernel is a matrix is of the head: it is taken whole where it fits, and left out on
// either side where it does not. A bias of a convolution that the file has not is zero. Throws
// input, naming `where`, with every other tensor that is missing, superfluous or misshapen.
MappedWeights map_weights(std::vector<NamedTensor> tensors, const std::vector<WantedTensor>& wanted,
                          const std::string& where);

// torchvision's name of a canonical one; empty where it has none.
std::string torch_name(const std::string& canonical);

// A canonical tensor as torchvision has it: by that name, or "LAYER.weight" for a layer that it has
// not, outputs first.
NamedTensor in_torch_form(NamedTensor tensor);

}  // namespace paceline
