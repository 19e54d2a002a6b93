// Decodes JPEG and PNG like TensorFlow's decode_image: colours become RGB (or one channel of gray),
// alpha is dropped, 16 bits become 8, and EXIF orientation is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Rows of interleaved bytes. Reuse the object: decoding reuses its memory.
struct Image {
  // Loops may read (but not use) this many bytes after the last pixel.
  static constexpr std::size_t kSlack = 16;

  int height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;  // height x width x channels bytes, plus kSlack

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
  void resize(int new_height, int new_width, int new_channels);
};

// Keeps library objects between images. One per thread.
class ImageDecoder {
 public:
  static constexpr std::size_t kMostPixels = std::size_t{1} << 27;  // 400 MB of RGB

  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // `channels` is 1 or 3. Throws input naming where(): empty, neither JPEG nor PNG (with a guess of
  // the content), damaged or cut short (including library warnings about lost data), an unsupported
  // kind (12 bits; arithmetic coding if the library lacks it), more than kMostPixels.
  void decode(std::string_view bytes, int channels, Image& image,
              const std::function<std::string()>& where);

 private:
  class Jpeg;
  std::unique_ptr<Jpeg> jpeg_;
};

// The PNG part of the decoder. Sets `fault` on failure.
void decode_png(std::string_view bytes, int channels, Image& image, std::string& fault);

}  // namespace paceline
