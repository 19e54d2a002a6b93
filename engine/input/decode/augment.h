// What a training sample goes through each time that it is taken: mirrored, transposed, shifted.
//
// A pure function of (seed, pass, position in the pass), as the order of samples and dropout are:
// the same for every number of ranks and threads, and after --resume.
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

// Of names with "+" between them, or "none". Throws usage.
Augmentation augmentation_of(std::string_view text);
// As it is written: in the order above. "none" if there is nothing.
std::string text_of(const Augmentation& augmentation);
// Throws usage where images of this size cannot be transposed or cropped so.
void check_augmentation(const Augmentation& augmentation, int height, int width);

// One draw. Output pixel (y, x) is input pixel (y + down, x + right) of the image that was first
// transposed, then flipped.
struct Change {
  bool hflip = false, vflip = false, transpose = false;
  int down = 0, right = 0;

  bool any() const { return hflip || vflip || transpose || down != 0 || right != 0; }
};

// `key` of the run's seed and Stream::augment.
Change draw_change(const Augmentation& augmentation, PhiloxKey key, std::uint32_t pass,
                   std::uint32_t position);

// `in` and `out` are height x width pixels of pixel_bytes each and do not overlap.
void apply(const Change& change, const std::uint8_t* in, int height, int width, int pixel_bytes,
           std::uint8_t* out);

}  // namespace paceline
