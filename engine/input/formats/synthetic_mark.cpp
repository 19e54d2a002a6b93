#include "engine/input/formats/synthetic_mark.h"

#include "engine/core/file.h"

namespace paceline {

void mark_synthetic(const std::filesystem::path& folder) {
  replace_file(folder / kSyntheticMark,
               "The images of this folder were painted by paceline data make. No result on them is "
               "one on the real data set; records of such runs say so.\n");
}

bool has_synthetic_mark(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kSyntheticMark);
}

}  // namespace paceline
