// The GPU libraries that products come from. None is linked: the program starts without them.
#pragma once

#include <string>
#include <vector>

#include "engine/core/shared_library.h"

namespace paceline::cuda {

// File names to look for, the preferred one first: of the major version of CUDA that this was built
// with, whatever the minor one. Tests name others.
struct LibraryNames {
  LibraryNames();

  std::vector<std::string> nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

// Opens them in the order in which they need each other: cuDNN asks the loader for NVRTC and
// cuBLASLt by their bare names, and gets those that are open already. Throws usage where cuBLASLt
// or cuDNN is missing; without NVRTC, cuDNN only offers less.
struct Libraries {
  explicit Libraries(const LibraryNames& names);

  SharedLibrary nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

}  // namespace paceline::cuda
