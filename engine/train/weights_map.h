// Maps names and layouts of a weights file to Paceline's.
//
// Canonical names and layouts are those of Keras' ResNet: "conv2_block1_1_conv/kernel" (rows,
// columns, in, out), ".../bias", "conv2_block1_1_bn/gamma", "beta", "moving_mean",
// "moving_variance", "dense/kernel" (in, out). A file may have
//  - Keras' names: "conv1_conv/conv1_conv/kernel:0", below "model_weights/" in a whole model;
//  - Keras 3's numbers: "layers/conv2d_1/vars/0" (keras_3_names.h);
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
  // In the order and layout of `wanted`. Empty: initialise it.
  std::vector<std::vector<float>> values;
  std::vector<std::string> notes;  // what was not used as stored
};

// Layers with a matrix kernel form the head. The head is used if it fits, and otherwise ignored in
// file and network. Missing convolution biases are zero. Throws input naming `where` and every
// other tensor that is missing, superfluous or of the wrong shape.
MappedWeights map_weights(std::vector<NamedTensor> tensors, const std::vector<WantedTensor>& wanted,
                          const std::string& where);

// torchvision's name of a canonical tensor. Empty if it has none.
std::string torch_name(const std::string& canonical);

// Converts a canonical tensor to torchvision's form (outputs first), with torchvision's name, or
// "LAYER.weight" if it has none.
NamedTensor in_torch_form(NamedTensor tensor);

}  // namespace paceline
