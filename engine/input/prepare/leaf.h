// Generates photographs: a cassava leaf with the signs of a disease, in front of soil and other
// leaves.
//
// They replace the real set where it is unavailable, with the same image sizes, file sizes and
// classes, which a network can learn. They say nothing about accuracy on real images.
#pragma once

#include <array>

#include "engine/core/random.h"
#include "engine/input/decode/image.h"

namespace paceline {

// Labels of the real set, in order: bacterial blight, brown streak, green mite, mosaic, none.
constexpr std::array<const char*, 5> kCassavaClasses = {"cbb", "cbsd", "cgm", "cmd", "healthy"};

// A pure function of label, sizes (at least 16) and the random numbers.
Image paint_leaf(int label, int width, int height, RandomSequence& random);

// 32 x 32 pixels of one of ten textures.
Image paint_texture(int label, RandomSequence& random);

}  // namespace paceline
