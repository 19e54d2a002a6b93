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

Selection selection_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorKind::usage, "\"" + text + "\" is not KEY=VALUE", "--only",
                "write for example --only backend=mpi");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace paceline
