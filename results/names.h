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
  std::string about;   // a few words, or empty
  // Of backends: "replica" (one task a replica) or "node" (one task a node), whether mpirun starts
  // the tasks, and whether it may stand before the slash of a stack.
  std::string tasks;
  bool mpirun = false, inside = false;
  bool gpus = false;                    // of devices: replicas are GPUs
  std::vector<std::string> precisions;  // of devices: those that they compute in
};

struct Names {
  std::vector<Name> backends, wrappers, devices, workloads;
};

const Names& known_names();  // from names.json, as it was when this was built

// Throws usage naming the nearest one. `kind` is "backend", "device" or "workload". A backend may
// be a stack ("mirrored/mpi+bf16"): what is told of it then follows from its parts.
Name find_name(std::string_view kind, std::string_view name, const std::string& where = "");

}  // namespace paceline
