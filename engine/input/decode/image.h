// Decodes JPEG and PNG like TensorFlow's decode_image: colours become RGB (or one channel of gray),
// alpha is dropped, 16 bits become 8, and EXIF orientation is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/random.h"

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

// Decodes JPEG with libjpeg-turbo. Private to image.cpp.

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

// Random changes of a training sample each time it is used: flips and crops.
//
// A pure function of (seed, pass, position in the pass), like the order of samples and dropout. So
// it is independent of the number of ranks and threads, and survives --resume.
//
//   hflip  left and right change places in half of the cases (Keras' RandomFlip("horizontal"),
//          torchvision's RandomHorizontalFlip)
//   vflip  likewise top and bottom
//   cropN  N black pixels are put around, then a window of the image's own size is taken from a
//          random place (torchvision's RandomCrop(size, padding=N); He et al., arXiv 1512.03385,
//          4.2, for CIFAR-10 with N = 4)

struct Augmentation {
  bool hflip = false, vflip = false;
  int crop = 0;  // pixels

  bool any() const { return hflip || vflip || crop > 0; }
  bool operator==(const Augmentation&) const = default;
};

// Parses names joined by "+", or "none". Throws usage.
Augmentation parse_augmentation(std::string_view text);
// The inverse, in the order above. "none" if nothing is enabled.
std::string to_text(const Augmentation& augmentation);
// Throws usage if images of this size cannot be cropped in this way.
void check_augmentation(const Augmentation& augmentation, int height, int width);

// One random draw. Output pixel (y, x) is pixel (y + down, x + right) of the flipped input.
struct Change {
  bool hflip = false, vflip = false;
  int down = 0, right = 0;

  bool any() const { return hflip || vflip || down != 0 || right != 0; }
};

// `key` belongs to the run's seed and Stream::augment.
Change draw_change(const Augmentation& augmentation, PhiloxKey key, std::uint32_t pass,
                   std::uint32_t position);

// `in` and `out` have height x width pixels of pixel_bytes each. They must not overlap.
void apply(const Change& change, const std::uint8_t* in, int height, int width, int pixel_bytes,
           std::uint8_t* out);

}  // namespace paceline
