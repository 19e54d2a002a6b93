// The folders that meters read, replaceable in tests.
#pragma once

#include <filesystem>

namespace paceline {

struct MeterRoots {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

// The kernel's, or proc and sys of the folder that PACELINE_METER_ROOT names.
MeterRoots meter_roots();

}  // namespace paceline
