// Which Paceline this is.
#pragma once

#include <string>

namespace paceline {

struct Build {
  std::string version;  // "0.1.0"
  std::string commit;   // 12 digits, or "unknown"
  bool dirty = false;   // sources differed from the commit
  std::string compiler, compiler_flags, build_type;
  std::string modules;  // loaded when it was configured, ":" between them
};

Build build();
std::string build_id();      // "0.1.0 0123456789ab dirty": what tells two builds apart
std::string version_line();  // for --version

}  // namespace paceline
