// The GPU libraries for products. None is linked, so the program starts without them.
#pragma once

#include <string>
#include <vector>

#include "engine/core/shared_library.h"

namespace paceline::cuda {

// File names in order of preference, for the CUDA major version of the build, with any minor
// version. Tests use others.
struct LibraryNames {
  LibraryNames();

  std::vector<std::string> nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

// Opens the libraries in the order of their dependencies: cuDNN looks up NVRTC and cuBLASLt by name
// and finds the open ones. Throws usage if cuBLASLt or cuDNN is missing. Without NVRTC, cuDNN
// offers fewer engines.
struct Libraries {
  explicit Libraries(const LibraryNames& names);

  SharedLibrary nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

}  // namespace paceline::cuda
