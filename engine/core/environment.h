// The environment as a value, so that tests can construct one.
#pragma once

#include <map>
#include <string>

namespace paceline {

using Environment = std::map<std::string, std::string>;
Environment environment_of_process();

// Empty if the variable is not set.
std::string value_of(const Environment& environment, const std::string& name);

}  // namespace paceline
