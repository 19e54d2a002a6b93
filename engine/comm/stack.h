// From a backend's name to a backend: "mpi", "mirrored/gloo+bf16" (see core/backend_stack.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/comm/backend.h"

namespace paceline {

// The tables are backend_table() and wrapper_table() (table.h). `gradients`: the memory that they
// lie in; on GPUs "mirrored" and "mirrored/nccl" are one NCCL world of all replicas. Throws usage
// for a part that is not in them or does not fit where it stands.
std::unique_ptr<Backend> make_backend(std::string_view stack,
                                      const std::vector<Factory<BackendFactory>>& backends,
                                      const std::vector<Factory<WrapperFactory>>& wrappers,
                                      MemoryKind gradients = MemoryKind::host);

}  // namespace paceline
