// Prefetches memory that is used later, in parts, while tiles are multiplied. The hardware
// prefetcher does not recognise the access pattern of tiles over planes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/device/cpu/share.h"

namespace paceline::cpu {

class FetchAhead {
 public:
  struct Part {
    const std::byte* from = nullptr;
    std::size_t lines = 0;
  };

  // Splits the memory into parts for this many tiles.
  explicit FetchAhead(std::size_t tiles) : tiles_(tiles) {}

  void add(const void* from, std::size_t bytes) {
    if (streams_ == streams_at_.size()) return;
    streams_at_[streams_++] = {static_cast<const std::byte*>(from), bytes / kLineBytes};
    lines_ += bytes / kLineBytes;
  }

  // The part for the next tile; ends at the end of a stream.
  Part next() {
    std::size_t begin = lines_ * done_ / tiles_, end = lines_ * (done_ + 1) / tiles_;
    ++done_;
    for (std::size_t i = 0; i < streams_; ++i) {
      const Part& stream = streams_at_[i];
      if (begin < stream.lines) {
        return {stream.from + begin * kLineBytes, std::min(end, stream.lines) - begin};
      }
      begin -= stream.lines;
      end -= stream.lines;
    }
    return {};
  }

 private:
  std::array<Part, 5> streams_at_{};
  std::size_t tiles_, streams_ = 0, lines_ = 0, done_ = 0;
};

}  // namespace paceline::cpu
