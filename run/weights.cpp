#include "run/weights.h"

#include <algorithm>
#include <vector>

#include "engine/core/error.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/checkpoint/format.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBothWays =
    "get them by: paceline data fetch resnet50-imagenet, or give --weights none or a file";

// The first by name of the weight files in the folder.
fs::path imagenet_file() {
  fs::path folder;
  try {
    folder = find_data_folder("resnet50-imagenet", {});
  } catch (const Error&) {
    throw Error(ErrorKind::input, "the start weights resnet50-imagenet were not found", "weights",
                kBothWays);
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".h5" || ending == ".safetensors") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw Error(ErrorKind::input, "the folder holds no .h5 and no .safetensors file",
                folder.string(), kBothWays);
  }
  return *std::min_element(files.begin(), files.end());
}

}  // namespace

fs::path weights_file(const std::string& parameter) {
  if (parameter == "none") return {};
  if (parameter == "imagenet") return imagenet_file();
  if (fs::is_regular_file(parameter)) return parameter;
  if (fs::exists(fs::path(parameter) / kManifestFile)) {
    return fs::path(parameter) / kParametersFile;
  }
  throw Error(ErrorKind::input, "there is no such weights file", parameter,
              "give a file, a checkpoint's folder, imagenet or none");
}

}  // namespace paceline
