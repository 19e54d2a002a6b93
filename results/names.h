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
  // Of backends.
  std::string tasks;      // "replica" (one task a replica) or "node" (one task a node)
  bool mpirun = false;    // starts the tasks
  bool inside = false;    // it may stand before the slash of a stack
  bool alone = false;     // it has one replica
  bool drifts = false;    // it sums nothing
  bool gpu_each = false;  // each replica needs a GPU of its own
  std::string stand_in;   // tries its layout where there is no GPU
  // Of devices.
  bool gpus = false;                    // replicas are GPUs
  bool serial = false;                  // one thread computes
  std::vector<std::string> precisions;  // that they compute in, the default first
  std::vector<std::string> backends;    // the first that is built is the default
};

struct Names {
  std::vector<Name> backends, wrappers, devices, workloads;
};

const Names& known_names();  // from names.json, as it was when this was built

// The backend of one replica, which a point that names none has.
const std::string& lone_backend();

// Throws usage naming the nearest one. `kind` is "backend", "device" or "workload". A backend may
// be a stack ("mirrored/mpi+bf16"): what is told of it then follows from its parts.
Name find_name(std::string_view kind, std::string_view name, const std::string& where = "");

}  // namespace paceline
