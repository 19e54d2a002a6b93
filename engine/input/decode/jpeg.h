// JPEG by libjpeg-turbo. For image.cpp only.
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

  // `fault` says what is wrong; empty if nothing is. The object is usable again in any case.
  void decode(std::string_view bytes, int channels, Image& image, std::string& fault);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
