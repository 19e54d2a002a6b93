// A shared library opened on demand, so that the program also starts without it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

class SharedLibrary {
 public:
  // Opens the first of `names` found in one of `folders`, or else on the loader's search path. If
  // none is found, it is not open, and problem() says why. The library stays loaded until the
  // process ends, because driver libraries cannot be unloaded safely.
  SharedLibrary(const std::vector<std::string>& names,
                const std::vector<std::filesystem::path>& folders);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }        // as it was opened
  const std::string& problem() const { return problem_; }  // "libnccl.so.2: cannot open ..."

  // Loads a function into `function`, a pointer to function. Throws usage naming library and
  // function if it is missing.
  template <typename Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  bool has(const char* name) const;

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string path_, problem_;
};

// Search path for GPU libraries: PACELINE_CUDA_LIBS (colon-separated folders), ../lib next to the
// program, and the CUDA Toolkit of the build.
std::vector<std::filesystem::path> gpu_library_folders();

}  // namespace paceline
