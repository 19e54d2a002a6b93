// What the verbs on studies read alike.
#pragma once

#include <string>

#include "analysis/comparison.h"
#include "analysis/study.h"

namespace paceline {

Base base_of(const std::string& name);                 // "matched" or "best"; throws usage
Selection selection_of(const std::string& key_value);  // of --only; throws usage

}  // namespace paceline
