// JPEG and PNG bytes to pixels, as TensorFlow's decode_image does: all colours become RGB (or one
// channel of gray), alpha is dropped, 16 bits become 8, and EXIF orientation is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Rows of interleaved bytes. Decode into the same one again: its memory is reused.
struct Image {
  // Loops over pixels may read, not use, this many bytes behind the last one.
  static constexpr std::size_t kSlack = 16;

  int height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;  // height x width x channels and kSlack more

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
  void resize(int new_height, int new_width, int new_channels);
};

// Keeps its libraries' objects between images. One a thread.
class ImageDecoder {
 public:
  static constexpr std::size_t kMostPixels = std::size_t{1} << 27;  // 400 MB of RGB

  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // `channels` 1 or 3. Throws input naming where(): empty, neither JPEG nor PNG (says what it looks
  // like), damaged or cut short (a library's warning about lost data counts), of a kind the library
  // cannot decode (12 bits; arithmetic coding where it was left out), more than kMostPixels.
  void decode(std::string_view bytes, int channels, Image& image,
              const std::function<std::string()>& where);

 private:
  class Jpeg;
  std::unique_ptr<Jpeg> jpeg_;
};

// The PNG part, for the decoder; `fault` says what is wrong, empty if nothing is.
void decode_png(std::string_view bytes, int channels, Image& image, std::string& fault);

}  // namespace paceline
