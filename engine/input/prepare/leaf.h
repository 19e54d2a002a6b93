// Made photographs: a cassava leaf with the signs of a disease, before soil and other leaves.
//
// They stand for the real set where that cannot be had: of its sizes, its bytes a file and its
// classes, which a network can learn to tell apart. They are no evidence of accuracy on real ones.
#pragma once

#include <array>

#include "engine/core/random.h"
#include "engine/input/decode/image.h"

namespace paceline {

// Labels of the real set, in its order: bacterial blight, brown streak, green mite, mosaic, none.
constexpr std::array<const char*, 5> kCassavaClasses = {"cbb", "cbsd", "cgm", "cmd", "healthy"};

// A pure function of label, sizes (at least 16) and the numbers that `random` gives.
Image paint_leaf(int label, int width, int height, RandomSequence& random);

// 32 x 32 pixels of one of ten textures.
Image paint_texture(int label, RandomSequence& random);

}  // namespace paceline
