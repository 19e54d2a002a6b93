// The version of this program.
#pragma once

#include <string>

namespace paceline {

struct Build {
  std::string version;  // "0.1.0"
  std::string commit;   // 12 digits, or "unknown"
  bool dirty = false;   // the sources differed from the commit
  std::string compiler, compiler_flags, build_type;
  std::string modules;  // loaded at configure time, colon-separated
};

Build build();
std::string build_id();      // "0.1.0 0123456789ab dirty": identifies a build
std::string version_line();  // for --version

}  // namespace paceline
