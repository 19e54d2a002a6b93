// Reads the two features of a tf.train.Example that a labelled image needs.
#pragma once

#include <functional>
#include <string>

#include "engine/input/formats/source.h"

namespace paceline {

struct ExampleKeys {
  std::string image = "image", label = "label";
};

// Parses `sample.bytes`, an Example in wire format, and sets image and label. Throws input naming
// where(): not an Example, a missing feature, a wrong type, not exactly one value, a label outside
// 0..classes - 1.
void take_example(EncodedSample& sample, const ExampleKeys& keys, std::size_t classes,
                  const std::function<std::string()>& where);

}  // namespace paceline
