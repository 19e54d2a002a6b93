// Decodes JPEG with libjpeg-turbo. Private to image.cpp.
#pragma once

#include <string>
#include <string_view>

#include "engine/input/decode/image.h"

namespace paceline {

class ImageDecoder::Jpeg {
 public:
  Jpeg();
  ~Jpeg();
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  // Sets `fault` on failure. The object stays usable.
  void decode(std::string_view bytes, int channels, Image& image, std::string& fault);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
