#include "run/version.h"

#include "commit.h"

namespace paceline {

Build build() {
  return {PACELINE_VERSION,    PACELINE_COMMIT,
          PACELINE_DIRTY != 0, std::string(PACELINE_COMPILER " ") + __VERSION__,
          PACELINE_FLAGS,      PACELINE_BUILD_TYPE,
          PACELINE_MODULES};
}

std::string build_id() {
  const Build b = build();
  return b.version + " " + b.commit + (b.dirty ? " (dirty)" : "");  // as Record::build() says it
}

std::string version_line() {
  const Build b = build();
  return "paceline " + build_id() + " (" + b.build_type + ", " + b.compiler + ")";
}

}  // namespace paceline
