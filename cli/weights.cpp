#include "cli/weights.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/input/dataset.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBothWays =
    "get them by: paceline data fetch resnet50-imagenet, or give --weights none or a file";

// The first by name of the weight files in the folder.
fs::path imagenet_file() {
  const fs::path folder = find_data_folder("resnet50-imagenet", {}, kBothWays);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".h5" || ending == ".safetensors") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw Error(ErrorKind::input, "holds no .h5 and no .safetensors file", folder.string(),
                kBothWays);
  }
  return *std::min_element(files.begin(), files.end());
}

}  // namespace

fs::path weights_file(const std::string& parameter) {
  if (parameter == "none") return {};
  if (parameter == "imagenet") return imagenet_file();
  if (fs::is_regular_file(parameter)) return parameter;
  throw Error(ErrorKind::input, "there is no such weights file", parameter,
              "give a file, imagenet or none");
}

std::string hash_of_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> part(1U << 20);
  Hash hash;
  while (stream) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    hash.add(part.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.eof()) {
    throw Error(ErrorKind::input, std::string("cannot be read: ") + std::strerror(errno),
                file.string(), "check its permissions");
  }
  return hash.hex();
}

}  // namespace paceline
