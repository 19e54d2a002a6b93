// Random changes of a training sample each time it is used: flips, transposition, crops.
//
// A pure function of (seed, pass, position in the pass), like the order of samples and dropout. So
// it is independent of the number of ranks and threads, and survives --resume.
//
//   hflip      left and right change places in half of the cases (Keras' RandomFlip("horizontal"),
//              torchvision's RandomHorizontalFlip)
//   vflip      likewise top and bottom
//   transpose  likewise rows and columns, of square images; with both flips each of the eight ways
//              to lay a square is as likely as the others
//   cropN      N black pixels are put around, then a window of the image's own size is taken from
//              a random place (torchvision's RandomCrop(size, padding=N); He et al., arXiv
//              1512.03385, 4.2, for CIFAR-10 with N = 4)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/core/random.h"

namespace paceline {

struct Augmentation {
  bool hflip = false, vflip = false, transpose = false;
  int crop = 0;  // pixels

  bool any() const { return hflip || vflip || transpose || crop > 0; }
  bool operator==(const Augmentation&) const = default;
};

// Parses names joined by "+", or "none". Throws usage.
Augmentation parse_augmentation(std::string_view text);
// The inverse, in the order above. "none" if nothing is enabled.
std::string to_text(const Augmentation& augmentation);
// Throws usage if images of this size cannot be transposed or cropped in this way.
void check_augmentation(const Augmentation& augmentation, int height, int width);

// One random draw. Output pixel (y, x) is pixel (y + down, x + right) of the input after
// transposition and flips, in that order.
struct Change {
  bool hflip = false, vflip = false, transpose = false;
  int down = 0, right = 0;

  bool any() const { return hflip || vflip || transpose || down != 0 || right != 0; }
};

// `key` belongs to the run's seed and Stream::augment.
Change draw_change(const Augmentation& augmentation, PhiloxKey key, std::uint32_t pass,
                   std::uint32_t position);

// `in` and `out` have height x width pixels of pixel_bytes each. They must not overlap.
void apply(const Change& change, const std::uint8_t* in, int height, int width, int pixel_bytes,
           std::uint8_t* out);

}  // namespace paceline
