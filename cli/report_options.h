// What the verbs on studies read alike.
#pragma once

#include <string>

#include "analysis/comparison.h"

namespace paceline {

Base base_of(const std::string& name);  // "matched" or "best"; throws usage

}  // namespace paceline
