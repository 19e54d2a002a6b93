// Every backend, device and workload that the source tree has, built here or not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct Name {
  std::string name;
  bool built = false;
  std::string reason;  // why not, where not built
  std::string tasks;   // backends: "replica" (one task a replica) or "node" (one task a node)
};

struct Names {
  std::vector<Name> backends, devices, workloads;
};

const Names& known_names();  // from names.json, as it was when this was built

// Throws usage naming the nearest one. `kind` is "backend", "device" or "workload".
const Name& find_name(std::string_view kind, std::string_view name, const std::string& where = "");

}  // namespace paceline
