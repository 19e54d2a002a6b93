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

  // Converts to any pointer to function.
  struct Symbol {
    void* address;
    template <typename Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address);
    }
  };
  // Throws usage naming library and function if it is missing.
  Symbol function(const char* name) const;
  // By its older name if it has only that; null if neither.
  Symbol optional(const char* name, const char* older = "") const;

 private:
  void* handle_ = nullptr;
  std::string path_, problem_;
};

// A member that is the function `name` of `library`, a member before it.
#define PACELINE_FUNCTION(library, member, name) \
  decltype(&::name) member = (library).function(#name)

// Search path for GPU libraries: PACELINE_CUDA_LIBS (colon-separated folders), ../lib next to the
// program, and the CUDA Toolkit of the build.
std::vector<std::filesystem::path> gpu_library_folders();

}  // namespace paceline
