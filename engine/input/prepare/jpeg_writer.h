// Pixels to baseline JPEG bytes.
#pragma once

#include <string>

#include "engine/input/decode/image.h"

namespace paceline {

// RGB, 4:2:0, `quality` from 1 to 100 as libjpeg counts it.
std::string encode_jpeg(const Image& image, int quality);

}  // namespace paceline
