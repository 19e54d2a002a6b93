// Encodes pixels as baseline JPEG.
#pragma once

#include <string>

#include "engine/input/decode/image.h"

namespace paceline {

// RGB, 4:2:0. `quality` is libjpeg's, from 1 to 100.
std::string encode_jpeg(const Image& image, int quality);

}  // namespace paceline
