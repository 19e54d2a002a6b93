// How much packed data may unpack to. A file of a megabyte that a stranger made may hold gigabytes.
#pragma once

#include <cstddef>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

class UnpackLimit {
 public:
  // `ratio`: what people pack shrinks to a thirtieth, or a hundredth where it is alike, a bomb to a
  // thousandth.
  UnpackLimit(std::size_t packed_bytes, std::string where, std::size_t ratio = 100)
      : packed_(packed_bytes), ratio_(ratio), where_(std::move(where)) {}

  // Throws input if `bytes` in all are more than can be true.
  void check(std::size_t bytes) const {
    constexpr std::size_t kFree = 32 << 20;
    if (bytes <= kFree || bytes / ratio_ <= packed_) return;
    throw input_error("the file would unpack to " + format_bytes(static_cast<double>(bytes)) +
                          " or more, over " + std::to_string(ratio_) + " times its size",
                      where_, "do not trust it: get it again from who made it");
  }

 private:
  std::size_t packed_, ratio_;
  std::string where_;
};

}  // namespace paceline
