#include "engine/device/cuda/products/libraries.h"

#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

void require(const SharedLibrary& library, const char* name, const char* install) {
  if (library) return;
  std::vector<std::string> places;
  for (const std::filesystem::path& folder : gpu_library_folders()) {
    places.push_back(folder.string());
  }
  places.push_back("the system's libraries");
  throw Error(ErrorKind::usage, std::string(name) + " cannot be opened: " + library.problem(),
              "looked in " + join(places, ", "),
              std::string("install ") + install + " or name its folder in PACELINE_CUDA_LIBS");
}

}  // namespace

Libraries::Libraries(const LibraryNames& names)
    : nvrtc_builtins(names.nvrtc_builtins, gpu_library_folders()),
      nvrtc(names.nvrtc, gpu_library_folders()),
      cublas_lt(names.cublas_lt, gpu_library_folders()),
      cudnn(names.cudnn, gpu_library_folders()) {
  require(cublas_lt, "cuBLASLt", "the libraries of CUDA 13");
  require(cudnn, "cuDNN", "cuDNN 9 for CUDA 13");
}

}  // namespace paceline::cuda
