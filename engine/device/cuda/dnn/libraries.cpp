#include "engine/device/cuda/dnn/libraries.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

constexpr int kMajor = CUDART_VERSION / 1000, kMinor = CUDART_VERSION / 10 % 100;

void require(const SharedLibrary& library, const char* name, const std::string& install) {
  if (library) return;
  std::vector<std::string> places;
  for (const std::filesystem::path& folder : gpu_library_folders()) {
    places.push_back(folder.string());
  }
  places.push_back("the system's libraries");
  throw Error(ErrorKind::usage,
              std::string(name) + " cannot be opened: " + library.problem() + ", looked in " +
                  join(places, ", "),
              "", "install " + install + " or name its folder in PACELINE_CUDA_LIBS");
}

}  // namespace

// NVRTC's other half is of its very version, which need not be the one of the build.
LibraryNames::LibraryNames()
    : nvrtc{fmt::format("libnvrtc.so.{}", kMajor)},
      cublas_lt{fmt::format("libcublasLt.so.{}", kMajor)},
      cudnn{"libcudnn_graph.so.9"} {
  constexpr int kMinors = 10;
  for (int i = 0; i < kMinors; ++i) {
    nvrtc_builtins.push_back(
        fmt::format("libnvrtc-builtins.so.{}.{}", kMajor, (kMinor + i) % kMinors));
  }
}

Libraries::Libraries(const LibraryNames& names)
    : nvrtc_builtins(names.nvrtc_builtins, gpu_library_folders()),
      nvrtc(names.nvrtc, gpu_library_folders()),
      cublas_lt(names.cublas_lt, gpu_library_folders()),
      cudnn(names.cudnn, gpu_library_folders()) {
  require(cublas_lt, "cuBLASLt", fmt::format("the libraries of CUDA {}", kMajor));
  require(cudnn, "cuDNN", fmt::format("cuDNN 9 for CUDA {}", kMajor));
}

}  // namespace paceline::cuda
