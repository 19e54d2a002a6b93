// JPEG and PNG bytes from an untrusted data set. One decoder for all inputs: a bad image must leave
// it usable.
#include <string_view>

#include "engine/core/error.h"
#include "engine/input/decode/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::ImageDecoder decoder;
  static paceline::Image image;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const int channels : {3, 1}) {
    try {
      decoder.decode(bytes, channels, image, [] { return "fuzz"; });
    } catch (const paceline::Error&) {
    }
  }
  return 0;
}
