// Every backend, device and workload in the source tree, built or not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct Name {
  std::string name;
  bool built = false;
  std::string reason;  // why it is not built
  std::string about;   // a few words, or empty
  // For backends:
  std::string tasks;         // "replica" (one task per replica) or "node" (one task per node)
  bool mpirun = false;       // mpirun starts its tasks
  bool inside = false;       // may stand before the slash of a stack
  bool bare = false;         // may stand in no stack
  bool needs_store = false;  // its ranks meet in the bootstrap store
  bool sums_node = false;    // sums inside a node by itself
  bool alone = false;        // supports a single replica only
  bool one_task = false;     // sums within one task: a single process on a single node
  bool drifts = false;       // does not reduce, so replicas drift apart
  bool gpu_each = false;     // each replica needs its own GPU
  std::string stand_in;      // the backend that simulates its layout without GPUs
  // For devices:
  bool gpus = false;                    // replicas are GPUs
  bool serial = false;                  // uses one compute thread
  std::vector<std::string> precisions;  // supported precisions, the default first
  std::vector<std::string> backends;    // the default is the first one that is built
};

struct Names {
  std::vector<Name> backends, wrappers, devices, workloads;
};

const Names& known_names();  // from names.json, at build time

// The backend for one replica, used by points that name none.
const std::string& lone_backend();

// All that find_name() takes, of backends without wrappers.
std::vector<std::string> accepted_names(std::string_view kind);

// Throws usage suggesting the nearest name. `kind` is "backend", "device" or "workload". A backend
// may be a stack ("mirrored/mpi+bf16"), whose traits are derived from its parts.
Name find_name(std::string_view kind, std::string_view name, const std::string& where = "");
// A backend that a record or a plan names, of which parts may be gone: by what is known of the
// others, else as one task a replica. Throws usage for what is no stack.
Name recorded_backend(std::string_view name, const std::string& where = "");

// Terms of other tools (Horovod, PyTorch, TensorFlow) and their equivalents in Paceline.

// What to use instead of `word`, to append to an error after "; ": "use gpus". Empty if nothing is
// known. `kind` is "axis" (spelled as in specs), "option" ("--batch-size"), "backend", "device" or
// "command".
std::optional<std::string> find_replacement(std::string_view kind, std::string_view word);

// Paceline's name if `word` is an exact synonym ("gpu" is the device cuda), else `word`.
std::string our_name(std::string_view kind, std::string_view word);

}  // namespace paceline
