#include "cli/report_options.h"

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

Base base_of(const std::string& name) {
  if (name == "matched") return Base::matched;
  if (name == "best") return Base::best;
  throw Error(ErrorKind::usage, "unknown base \"" + name + "\"", "--base",
              suggestion(name, {"matched", "best"}));
}

}  // namespace paceline
