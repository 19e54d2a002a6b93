// Opens a data set's folder and reads all of it, as training would.
#pragma once

#include <cstdlib>

#include "engine/core/error.h"
#include "engine/input/formats/source.h"

namespace paceline {

inline void read_image_set(const std::filesystem::path& folder) {
  for (const bool skip_damaged : {false, true}) {
    try {
      const ImageSet set = open_image_set(folder, {0, skip_damaged});
      EncodedSample sample;
      for (const auto& [name, source] : set.splits) {
        for (std::size_t i = 0; i < source->samples(); ++i) {
          try {
            source->read(i, sample);
          } catch (const Error&) {
            continue;
          }
          const auto classes = static_cast<std::int32_t>(set.classes.size());
          if (sample.label < 0 || sample.label >= classes) std::abort();
        }
      }
      set.hash();
    } catch (const Error&) {
    }
  }
}

}  // namespace paceline
