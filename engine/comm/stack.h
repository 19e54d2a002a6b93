// Creates a backend from its name: "mpi", "mirrored/gloo+bf16" (see core/backend_stack.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/comm/backend.h"

namespace paceline {

// Looks names up in backend_table() and wrapper_table() (table.h). `gradients`: the kind of memory
// of the gradients. On GPUs, "mirrored" and "mirrored/nccl" are one NCCL world of all replicas.
// Throws usage for a part that is unknown or in the wrong position.
std::unique_ptr<Backend> make_backend(std::string_view stack,
                                      const std::vector<Factory<BackendFactory>>& backends,
                                      const std::vector<Factory<WrapperFactory>>& wrappers,
                                      MemoryKind gradients = MemoryKind::host);

}  // namespace paceline
