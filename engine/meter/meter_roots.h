// The folders that meters read, replaceable in tests.
#pragma once

#include <filesystem>

namespace paceline {

struct MeterRoots {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

}  // namespace paceline
