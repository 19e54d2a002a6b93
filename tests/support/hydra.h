// MPICH's launcher cannot always tell who died from those that it killed itself.
#pragma once

#include "engine/core/environment.h"
#include "engine/start/spawn.h"

namespace paceline {

inline bool is_hydra() {
  static const auto launcher = find_launcher(environment_of_process());
  return launcher && launcher->make == LauncherMake::hydra;
}

}  // namespace paceline
