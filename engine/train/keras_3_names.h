// Names in weights files of Keras 3: "layers/conv2d_1/vars/0" says a layer's class, its number
// within the class, and the number of its variable, whatever the layer's own name was.
#pragma once

#include <string>
#include <vector>

#include "engine/train/weights_map.h"

namespace paceline {

bool has_keras_3_names(const std::vector<NamedTensor>& tensors);

// Gives tensors the canonical names of `wanted`: the n-th convolution of the file is the n-th of
// the network in Keras' order, and so on for each kind. Removes what is no weight. Returns a note,
// or "" if the file's own names say the same.
std::string take_canonical_names(std::vector<NamedTensor>& tensors,
                                 const std::vector<WantedTensor>& wanted);

}  // namespace paceline
