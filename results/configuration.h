// What a centre and a user have set for all calls: docs/configuration.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/core/error.h"

namespace paceline {

struct Setting {
  std::string value;
  std::string from;  // "/etc/paceline/config.json:3"; empty: nobody set it
};

struct Configuration {
  Setting results = {"results/local", ""};  // the folder of studies
  Setting site;                             // the profile that jobs are submitted with
};

// The centre's file, and the user's, whose settings go above the centre's. The user has none
// without XDG_CONFIG_HOME and HOME.
std::vector<std::filesystem::path> configuration_files(const Environment& environment);

// Files that are absent are passed over. "~/" at the front of a value, and $NAME and ${NAME} in
// it, are those of `environment`. Throws input.
Configuration read_configuration(const std::vector<std::filesystem::path>& files,
                                 const Environment& environment);

// Of this process, read once. If a file cannot be used, nothing is set, and `fault` says why.
struct ConfigurationHere {
  Configuration settings;
  std::optional<Error> fault;
};
const ConfigurationHere& configuration();

std::string configuration_schema();

}  // namespace paceline
