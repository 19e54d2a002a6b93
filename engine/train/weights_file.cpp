#include "engine/train/weights_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/trial.h"
#include "engine/train/keras_h5.h"
#include "engine/train/weights.h"

namespace paceline {

namespace {

// What people give instead of weights, by its first bytes.
struct Disguise {
  std::string_view begin;
  const char* what;
  const char* fix;
};

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr Disguise kDisguises[] = {
    {"version https://git-lfs", "is a git-lfs pointer, not the file", "run git lfs pull"},
    {"<", "is a web page, not weights", "download the file again"},
    {"PK\x03\x04", "is a zip archive: PyTorch's .pth, a .keras or an .npz file",
     "save it as safetensors, or as Keras' .h5"},
    {"\x80", "is a Python pickle (.pth)", "save it as safetensors"},
};

std::string first_bytes(const std::filesystem::path& file) {
  std::error_code code;
  if (std::filesystem::is_directory(file, code)) {
    throw Error(ErrorKind::input, "this is a folder, not a weights file", file.string(),
                "name a file");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw Error(ErrorKind::input, std::string("weights cannot be read: ") + std::strerror(errno),
                file.string(), "check the path and its permissions");
  }
  std::array<char, 32> bytes{};
  stream.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(stream.gcount())};
}

}  // namespace

void try_weights(const std::filesystem::path& file) {
  constexpr double kSeconds = 300;  // a large file on a slow file system
  if (!first_bytes(file).starts_with(kHdf5)) return;
  run_isolated([&] { read_keras_h5(file); }, kSeconds, "HDF5", file.string());
}

std::vector<NamedTensor> read_weights(const std::filesystem::path& file) {
  const std::string begin = first_bytes(file);
  if (begin.empty()) {
    throw Error(ErrorKind::input, "the file is empty", file.string(), "get the file again");
  }
  if (begin.starts_with(kHdf5)) return read_keras_h5(file);
  // A safetensors header follows its length; the length may begin with any byte.
  if (begin.size() <= 8 || begin[8] != '{') {
    for (const Disguise& disguise : kDisguises) {
      if (!begin.starts_with(disguise.begin)) continue;
      throw Error(ErrorKind::input, disguise.what, file.string(), disguise.fix);
    }
  }
  return read_safetensors(file);
}

void load_weights(Program& program, const Plan& plan, const std::filesystem::path& file,
                  std::vector<std::string>& notes) {
  std::vector<WantedTensor> wanted;
  for (const auto* arrays : {&plan.parameters, &plan.statistics}) {
    for (const ParameterInfo& info : *arrays) wanted.push_back({info.name, info.shape});
  }
  MappedWeights mapped = map_weights(read_weights(file), wanted, file.string());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<double> values(mapped.values[i].begin(), mapped.values[i].end());
    const std::string bad = not_finite("tensor " + wanted[i].name, values);
    if (!bad.empty()) {
      throw Error(ErrorKind::input, bad, file.string(), "use weights of a training that converged");
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (mapped.values[i].empty()) continue;
    const std::vector<double> values(mapped.values[i].begin(), mapped.values[i].end());
    if (i < plan.parameters.size()) {
      program.write_parameter(static_cast<int>(i), values);
    } else {
      program.write_statistic(static_cast<int>(i - plan.parameters.size()), values);
    }
  }
  notes.insert(notes.end(), mapped.notes.begin(), mapped.notes.end());
}

}  // namespace paceline
