// Where meters read.
#pragma once

#include <filesystem>

namespace paceline {

struct MeterRoots {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

}  // namespace paceline
