// A library that is opened when it is needed, so that a program starts where it is missing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

class SharedLibrary {
 public:
  // Opens the first of `names` found in one of `folders`, else wherever the system's loader looks.
  // Not open if there is none; problem() then says why. Stays loaded until the process ends:
  // libraries of drivers do not survive being unloaded.
  SharedLibrary(const std::vector<std::string>& names,
                const std::vector<std::filesystem::path>& folders);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }        // as it was opened
  const std::string& problem() const { return problem_; }  // "libnccl.so.2: cannot open ..."

  // A function of the library into `function`, a pointer to function. Throws usage, naming library
  // and function, where it lacks one.
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

// Where the GPU libraries that are not part of this program may lie: PACELINE_CUDA_LIBS (folders,
// separated by colons), ../lib beside the program, the CUDA Toolkit that it was built with.
std::vector<std::filesystem::path> gpu_library_folders();

}  // namespace paceline
